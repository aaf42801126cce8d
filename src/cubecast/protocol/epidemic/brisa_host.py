"""What a flow of Brisa needs of the process it is at."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Protocol

from cubecast.ids import Counter, Incarnation, NodeId
from cubecast.protocol.epidemic.brisa_packets import FlowId, Position


class Rules(Enum):
    LABEL = "label"
    PAPER = "paper"


class Host(Protocol):
    """What a flow needs of its process."""

    me: NodeId
    incarnation: Incarnation
    parents_wanted: int
    buffer_messages: int
    buffer_bytes: int
    rules: Rules
    mutual: bool
    """Whether stopping is mutual: with the first-come strategy a link that is not good one way is not the other."""

    @property
    def neighbours(self) -> Iterable[NodeId]: ...

    def send(self, peer: NodeId, packet: Any) -> None: ...

    def send_all(self, peers: tuple[NodeId, ...], packet: Any) -> None: ...

    def is_full(self, peer: NodeId) -> bool:
        """Does the link to it take nothing more for now?"""

    def go_on_soon(self) -> None:
        """Call `catch_up` again when what was sent so far has left."""

    def deliver(self, flow: FlowId, first: Counter, payloads: tuple[bytes, ...]) -> None: ...

    def report_gap(self, flow: FlowId, first: Counter, last: Counter) -> None: ...

    def link_cost(self, peer: NodeId, position: Position) -> float: ...

    def own_cost(self, children: int) -> float: ...
