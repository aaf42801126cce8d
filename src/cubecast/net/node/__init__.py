"""One node: the machine's driver, the port of its own process, its life."""
