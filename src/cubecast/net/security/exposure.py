"""Files of a node that others on its machine can read, and had better not."""

import stat
from collections.abc import Iterator
from pathlib import Path

from cubecast.net.settings.config import NodeConfig


def exposures(config: NodeConfig) -> Iterator[str]:
    """A line for each, with what to do. Groups are left to whoever runs the node: services often have their own."""
    if config.tls is not None and config.tls.key is not None and _is_open(config.tls.key, stat.S_IROTH):
        yield f"everybody on this machine can read the private key {config.tls.key}: chmod o= {config.tls.key}"
    if config.data is not None and _is_open(config.data, stat.S_IROTH | stat.S_IXOTH):
        yield f"everybody on this machine can read what is kept in {config.data}: chmod o= {config.data}"


def _is_open(path: Path, to_others: int) -> bool:
    try:
        return bool(path.stat().st_mode & to_others)
    except OSError:
        return False
