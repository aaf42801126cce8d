"""Thin clients: what a node does for them, and their own side of the connection."""
