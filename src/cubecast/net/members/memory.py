"""What a node remembers from one life to the next, in its data directory: its id, its incarnation, members it knew.

The directory belongs to no other process meanwhile. Where all members were down, one has to know the others.
"""

import asyncio
import fcntl
import logging
import os
import secrets
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from cubecast.errors import BadInput
from cubecast.ids import ID_LIMIT, Incarnation, NodeId
from cubecast.log.segments import sync_directory
from cubecast.net.links.handshake import LAST_INCARNATION
from cubecast.net.members.directory import Directory
from cubecast.net.settings.config import NodeConfig

log = logging.getLogger(__name__)

EXPECTED_FOR = 2.0
"""Seconds a node with a log waits for members that should be there."""
LOOK_EVERY = 0.01


class Members(msgspec.Struct, frozen=True):
    """The cluster as this node last knew it."""

    node: NodeId
    """This node's id."""
    dimension: int
    places: dict[NodeId, str]
    """Where the others lived."""
    left: list[NodeId] = []
    """Those of them that said goodbye."""


class Acquaintances:
    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._before: set[NodeId] = set()
        """Those of an earlier life."""
        self._left: set[NodeId] = set()
        self._now: Members | None = None

    def recall(self) -> None:
        """When the data directory is this node's, and before anything is remembered in it."""
        known = known_members(self._config)
        if known is not None:
            self._left = set(known.left)
            self._before = set(known.places) - self._left

    def note(self, directory: Directory, left: Collection[NodeId], living: Collection[NodeId]) -> None:
        """Others may still speak of those that left in an earlier life."""
        me = directory.me
        self._left = self._left.difference(living).union(left)
        if self._config.data is not None and me is not None:
            others = {node: place.address for node, place in directory.places.items() if node != me.node}
            members = Members(me.node, directory.dimension, others, sorted(self._left))
            if members != self._now:
                self._now = members
                _remember(self._config, members)

    async def appear(self, living: Callable[[], Collection[NodeId]]) -> None:
        """A little patience with members that are not up: where all were down they come now, and may have in their
        logs what this node's has not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + EXPECTED_FOR
        expected = {*self._config.peers, *self._before}
        while expected - set(living()) and loop.time() < deadline:
            await asyncio.sleep(LOOK_EVERY)


def _remember(config: NodeConfig, members: Members) -> None:
    """Whom to look for when no node of `join` answers. Not synced: an older one serves as well."""
    if config.data is not None:
        path = config.data / "members"
        try:
            new = path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(members))
            new.replace(path)
        except OSError as error:
            log.error("this node cannot remember its members in %s: %s", path, error.strerror)


def known_members(config: NodeConfig) -> Members | None:
    """Of an earlier life; None when there was none, or no other member in it."""
    path = None if config.data is None else config.data / "members"
    if path is None or not path.exists():
        return None
    try:
        known = msgspec.json.decode(path.read_bytes(), type=Members)
        return known if known.places else None
    except (OSError, msgspec.MsgspecError) as error:
        log.error("%s does not tell the members of the cluster: %s", path, error)
        return None


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
