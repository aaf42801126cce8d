"""Starting the servers that some peers need: each on a free loopback port, its files in a directory of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cubecast.errors import CubecastError
from cubecast.experiments.live_faults.link_proxy import free_addresses

DEADLINE = 60.0
"""Seconds until a server takes connections."""
ELSEWHERE = ("/usr/lib/rabbitmq/bin", "/usr/sbin", "/usr/local/sbin")
"""Where packages put servers that users do not call by name. RabbitMQ's own script comes first: the one in `sbin`
changes the user."""


def program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((*ELSEWHERE, os.environ.get("PATH", ""))))


@contextmanager
def nats() -> Iterator[str]:
    (at,) = free_addresses(1)
    with _directory() as place, _running(["nats-server", "-a", at.host, "-p", str(at.port)], place):
        _wait(at.host, at.port)
        yield str(at)


@contextmanager
def redis() -> Iterator[str]:
    (at,) = free_addresses(1)
    words = ["redis-server", "--bind", at.host, "--port", str(at.port), "--save", "", "--appendonly", "no"]
    with _directory() as place, _running(words, place):
        _wait(at.host, at.port)
        yield str(at)


@contextmanager
def mosquitto() -> Iterator[str]:
    (at,) = free_addresses(1)
    with _directory() as place:
        said = f"listener {at.port} {at.host}\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
        (place / "mosquitto.conf").write_text(said)
        with _running(["mosquitto", "-c", str(place / "mosquitto.conf")], place):
            _wait(at.host, at.port)
            yield str(at)


@contextmanager
def rabbitmq() -> Iterator[str]:
    """With a name server of its own (epmd), which would otherwise stay behind for everybody on the machine."""
    at, names, between = free_addresses(3)
    with _directory() as place, ExitStack() as stack:
        of_rabbit = {
            "NODENAME": f"bench-{at.port}@localhost",
            "NODE_IP_ADDRESS": at.host,
            "NODE_PORT": at.port,
            "DIST_PORT": between.port,
            "MNESIA_BASE": place / "data",
            "LOG_BASE": place / "log",
            "PID_FILE": place / "pid",
            "ENABLED_PLUGINS_FILE": place / "plugins",
            "CONFIG_FILE": place / "rabbitmq",
            "CONF_ENV_FILE": place / "environment",
        }
        more = {f"RABBITMQ_{name}": str(value) for name, value in of_rabbit.items()}
        more |= {"HOME": str(place), "ERL_EPMD_PORT": str(names.port), "ERL_EPMD_ADDRESS": names.host}
        stack.enter_context(_running(["epmd"], place, more))
        _wait(names.host, names.port)
        stack.enter_context(_running(["rabbitmq-server"], place, more))
        _wait(at.host, at.port)
        yield str(at)


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cubecast-peer-", ignore_cleanup_errors=True) as place:
        yield Path(place)


@contextmanager
def _running(words: list[str], place: Path, more: dict[str, str] | None = None) -> Iterator[None]:
    """In a session of its own, so that what its scripts started ends with it."""
    found = program(words[0])
    if found is None:
        raise CubecastError(f"the server program {words[0]!r} is not installed")
    with (place / f"{words[0]}.out").open("wb") as said:
        process = subprocess.Popen(
            [found, *words[1:]],
            cwd=place,
            env=os.environ | (more or {}),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(host: str, port: int) -> None:
    give_up = time.monotonic() + DEADLINE
    while True:
        try:
            socket.create_connection((host, port), timeout=1.0).close()
            return
        except OSError:
            if time.monotonic() > give_up:
                raise CubecastError(f"nobody takes connections at {host}:{port} after {DEADLINE:.0f} s") from None
            time.sleep(0.05)
