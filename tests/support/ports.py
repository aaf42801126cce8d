"""Ports for those who must know them before anybody listens."""

import socket
from contextlib import ExitStack


def free_addresses(count: int) -> list[str]:
    """Loopback addresses nobody listens on; all different, because all are open at once."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
