"""EpTO, epidemic total order: thesis of M. Matos, §5.3."""
