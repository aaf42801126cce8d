"""Who subscribes to what, and how often things are published: from real logs, or made up with the same shape.

Every subscription table has the columns `user` and `topic` (strings), one row per pair.
"""
