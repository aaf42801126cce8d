"""Loopback addresses for those who must know them before anybody listens there.

Not from the range that systems hand out for outgoing connections and for "any port": what comes from there may be
somebody else's before the one it was chosen for listens, and who keeps dialling such a port while nobody listens may in
the end be connected to itself. Processes that choose at the same time choose from different parts of the range.
"""

import os
import socket
from contextlib import ExitStack
from random import SystemRandom

from cubecast.addresses import Address

PORTS = range(15_000, 32_000)
PARTS = 17


def free_addresses(count: int) -> list[Address]:
    """All different, because all are open at once."""
    random, found, ours = SystemRandom(), list[Address](), PORTS[os.getpid() % PARTS :: PARTS]
    with ExitStack() as stack:
        while len(found) < count:
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", random.choice(ours)))
            except OSError:
                continue
            found.append(Address(*probe.getsockname()))
    return found
