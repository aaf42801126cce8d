"""A process that is a node: it starts, says where it is, reloads when told to, and leaves in good order.

Its service manager is told how it is: systemd's protocol, a datagram to the socket it names.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns

from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.logs import set_up
from cubecast.net.settings.resolve import Reloader, Resolved

VARIABLE = "NOTIFY_SOCKET"


def notify(state: str) -> None:
    """`READY=1`, `STOPPING=1` and so on; nothing happens where no supervisor asked to be told."""
    path = os.environ.get(VARIABLE, "")
    if path:
        address = "\0" + path[1:] if path.startswith("@") else path
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(state.encode(), address)


async def serve(read: Callable[[], Resolved[NodeConfig]], announce: Callable[[LiveNode], None]) -> None:
    """Until SIGTERM or SIGINT; SIGHUP reads the settings again. BadInput when they cannot work."""
    config = read().config
    set_up(config.logging)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    live = LiveNode(config, on_broken=stop.set)
    set_up(config.logging, live.identity)
    live.reloads.append(_prepare_logs)
    reloader = Reloader(NodeConfig, config, read, live.reloads)
    reloading = Reloading(reloader)
    loop.add_signal_handler(signal.SIGHUP, reloading.ask)
    starting = asyncio.ensure_future(live.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        return
    await starting
    announce(live)
    notify(f"READY=1\nSTATUS=node {live.place.node} of cluster {config.cluster}")
    await stopping
    notify("STOPPING=1")
    await live.close()
    if live.broken is not None:
        raise live.broken


class Reloading:
    """One after the other, and reading in a thread: a policy of thousands of principals takes a while to read."""

    def __init__(self, reloader: Reloader[NodeConfig]) -> None:
        self._reloader = reloader
        self._is_asked = False
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        self._is_asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._reload())

    async def _reload(self) -> None:
        while self._is_asked:
            self._is_asked = False
            notify(f"RELOADING=1\nMONOTONIC_USEC={monotonic_ns() // 1000}")
            try:
                take_effect = await asyncio.to_thread(self._reloader.prepare)
                if take_effect is not None:
                    take_effect()
            finally:
                notify("READY=1")


def _prepare_logs(config: NodeConfig) -> Callable[[], None]:
    return lambda: set_up(config.logging)
