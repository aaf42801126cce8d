"""A node and its log: recording, replaying, filling what is missing from peers."""
