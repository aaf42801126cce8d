"""The durable log: what a node delivers, kept on disk in the order of delivery."""
