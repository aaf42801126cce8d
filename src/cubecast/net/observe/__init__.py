"""What a node knows about its own work, kept so that asking costs something and working does not."""
