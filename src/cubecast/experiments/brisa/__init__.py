"""HyParView and Brisa: thesis of M. Matos, chapter 4."""
