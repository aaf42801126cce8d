"""The members a node knew, remembered from one life to the next: where all of them were down, one of them has to know
the others."""

import asyncio
import logging
from collections.abc import Callable, Collection

import msgspec

from cubecast.ids import NodeId
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
