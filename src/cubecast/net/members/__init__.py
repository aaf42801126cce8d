"""Who belongs to the cluster: admission, addresses, and the links between members."""
