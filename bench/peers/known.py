"""Every messaging system there is a comparison with, and what is missing here to run it."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from bench.peers import servers

Body = Callable[..., None]
"""What a member process runs."""


@dataclass(frozen=True)
class Known:
    name: str
    package: str
    """What Python imports."""
    module: str
    function: str
    programs: tuple[str, ...] = ()
    """What its server needs."""
    server: Callable[[], AbstractContextManager[str]] | None = None

    def missing(self) -> str | None:
        if find_spec(self.package) is None:
            return f"the Python package {self.package!r} is not installed"
        for one in self.programs:
            if servers.program(one) is None:
                return f"the server program {one!r} is not installed"
        return None

    @contextmanager
    def running(self) -> Iterator[Body]:
        """Its server, if it has one, for as long as the members need it."""
        body = getattr(importlib.import_module(f"bench.peers.{self.module}"), self.function)
        if self.server is None:
            yield body
            return
        with self.server() as address:
            yield partial(body, address)


PEERS = (
    Known("ZeroMQ mesh", "zmq", "zeromq", "mesh"),
    Known("ZeroMQ proxy", "zmq", "zeromq", "proxy"),
    Known("Zenoh mesh", "zenoh", "zenoh", "mesh"),
    Known("NATS", "nats", "nats", "member", ("nats-server",), servers.nats),
    Known("Redis pub/sub", "redis", "redis", "member", ("redis-server",), servers.redis),
    Known("Redis pub/sub, pipelines", "redis", "redis", "pipelines", ("redis-server",), servers.redis),
    Known("Mosquitto", "paho", "mosquitto", "member", ("mosquitto",), servers.mosquitto),
    Known("RabbitMQ", "aio_pika", "rabbitmq", "member", ("rabbitmq-server", "epmd"), servers.rabbitmq),
)
FLOOR = Known("TCP and nothing else", "uvloop", "bare", "mesh")
"""No system: what the others' latencies are above. Nothing holds it back, so it is for fixed rates only."""
