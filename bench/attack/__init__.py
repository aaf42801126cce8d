"""Everything that went wrong once, and what networks, machines and strangers do, against real processes."""
