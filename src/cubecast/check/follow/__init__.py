"""Judging a run while it goes on: journals are read as they grow, and verdicts hold up to how far they were read."""
