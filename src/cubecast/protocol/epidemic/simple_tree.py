"""SimpleTree: a random tree that one process hands out, and messages pushed along its links at once.

Who comes asks the first process for a parent and gets one of those that came before, so no cycle can arise. Nothing is
done about processes that fail: this is the cheap end of what Brisa is compared with.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Incarnation, NodeId, Topic
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import Effects
from cubecast.protocol.epidemic.dissemination import Disseminator, Message
from cubecast.protocol.family import MOST_NODES


@dataclass(slots=True)
class Enter(Packet):
    """To the first process: where do I belong?"""


@dataclass(slots=True)
class Placed(Packet):
    parent: NodeId

    def mentions(self) -> Iterable[NodeId]:
        return (self.parent,)


@dataclass(slots=True)
class Attach(Packet):
    """The sender is a child of the receiver from here on."""


class SimpleTree(Disseminator):
    def __init__(
        self,
        node: NodeId,
        first: NodeId,
        rng: Random,
        *,
        incarnation: Incarnation = 0,
        subscribed: Iterable[Topic] = (),
    ) -> None:
        super().__init__(node, incarnation, subscribed)
        self.parent: NodeId | None = None
        self.children: dict[NodeId, None] = {}
        self._first = first
        self._rng = rng
        self._members: dict[NodeId, None] = {node: None}
        """At the first process: who came."""

    def on_start(self, now: float) -> Effects:
        if self.node != self._first:
            self._send((self._first,), Enter())
        return self._take()

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        return []

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case Message():
                self._accept(sender, packet)
            case Enter() if self.node == self._first and len(self._members) < MOST_NODES:
                others = [one for one in self._members if one != sender]
                self._members[sender] = None
                self._send((sender,), Placed(self._rng.choice(others)))
            case Placed() if sender == self._first and self.parent is None and 0 <= packet.parent != self.node:
                self.parent = packet.parent
                self._send((packet.parent,), Attach())
                for received in self.received.values():
                    self._send_all(received.kept.values())
            case Attach() if len(self.children) < MOST_NODES:
                self.children[sender] = None
            case _:
                raise RemoteProtocolError(f"a {type(packet).__name__} that no process of a tree sends here")
        return self._take()

    def _send_all(self, packets: Iterable[Message]) -> None:
        """What was published before there was a parent."""
        assert self.parent is not None
        for packet in packets:
            self._send((self.parent,), packet)

    def _spread(self, sender: NodeId, packet: Message) -> None:
        parent = () if self.parent is None else (self.parent,)
        self._send((peer for peer in (*parent, *self.children) if peer != sender), packet)

    def waiting(self) -> list[str]:
        return [] if self.parent is not None or self.node == self._first else ["a place in the tree"]


TREE_PACKETS: tuple[type[Any], ...] = (Enter, Placed, Attach, Message)
