"""A node's settings: one set of dataclasses, filled from a file, the environment and the command line."""
