"""Telling the system's service manager how a node is: systemd's protocol, a datagram to the socket it names."""

import os
import socket
from contextlib import suppress

VARIABLE = "NOTIFY_SOCKET"


def notify(state: str) -> None:
    """`READY=1`, `STOPPING=1` and so on; nothing happens where no supervisor asked to be told."""
    path = os.environ.get(VARIABLE, "")
    if path:
        address = "\0" + path[1:] if path.startswith("@") else path
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(state.encode(), address)
