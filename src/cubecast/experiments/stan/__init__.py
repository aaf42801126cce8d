"""StaN and CrosspostFlood: thesis of M. Matos, chapter 3."""
