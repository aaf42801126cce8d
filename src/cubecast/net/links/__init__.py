"""Bytes between processes: frames, connections, TLS, dialling and listening."""
