"""What a node offers to its user, in its own process or through a connection."""
