"""What a node remembers from one life to the next, in its data directory, which belongs to no other process
meanwhile."""

import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cubecast.errors import BadInput
from cubecast.ids import ID_LIMIT, Incarnation, NodeId
from cubecast.log.segments import sync_directory
from cubecast.net.links.handshake import LAST_INCARNATION
from cubecast.net.settings.config import NodeConfig


def claim(config: NodeConfig) -> Callable[[], None]:
    """The directory is this node's until what is returned is called, or its process ends; BadInput when it cannot be.

    Two nodes would each take the other's incarnation for its own, and come back as a node that lived already.
    """
    if config.data is None:
        return lambda: None
    try:
        config.data.parent.mkdir(parents=True, exist_ok=True)
        config.data.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(config.data, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadInput(f"{config.data} cannot be this node's data directory: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BadInput(f"{config.data} is the data directory of another node that runs; give each its own") from None
    except OSError:
        pass  # a file system without locks: it cannot be told
    return lambda: os.close(descriptor)


def own_id(config: NodeConfig) -> NodeId:
    """The id this node drew for itself, the same in every life that has its data directory."""
    if config.data is None:
        return secrets.randbelow(ID_LIMIT)
    path = config.data / "id"
    try:
        if path.exists():
            found = int(path.read_text())
            if not 0 <= found < ID_LIMIT:
                raise ValueError
            return found
        drawn = secrets.randbelow(ID_LIMIT)
        _write(path, drawn)
        return drawn
    except OSError as error:
        raise BadInput(f"this node cannot remember its id in {path}: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path} does not hold the id of a node; remove it to draw another one") from None


def last_incarnation(config: NodeConfig) -> Incarnation:
    """The last incarnation this node lived, as its data directory says; −1 when it is new."""
    path = _memory(config)
    if path is None or not path.exists():
        return -1
    try:
        found = int(path.read_text())
        if not 0 <= found <= LAST_INCARNATION:
            raise ValueError
        return found
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path} does not hold the number of an incarnation; remove it to start anew") from None


def remember(config: NodeConfig, incarnation: Incarnation) -> None:
    """On the disk before anything is said under this name: a log may hold what was said under the one before."""
    if incarnation > LAST_INCARNATION:
        raise BadInput(f"this id has lived {LAST_INCARNATION} incarnations, as others say: take another one with --id")
    path = _memory(config)
    if path is None:
        return
    try:
        _write(path, incarnation)
    except OSError as error:
        raise BadInput(f"this node cannot remember its incarnation in {path}: {error.strerror}") from None


def _write(path: Path, number: int) -> None:
    """All of it, on the disk."""
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(f"{number}\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def _memory(config: NodeConfig) -> Path | None:
    return None if config.data is None else config.data / "incarnation"
