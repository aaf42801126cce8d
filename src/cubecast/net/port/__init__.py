"""What a node offers to whoever uses it, in its own process or through a connection."""
