"""What a node serves over HTTP: health, metrics, JSON for programs, pages for people."""
