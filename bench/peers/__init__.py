"""The same group chat over other messaging systems, as their Python users run them."""
