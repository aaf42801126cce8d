"""Epidemic protocols: every node passes on what it hears to a few random others."""
