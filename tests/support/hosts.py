"""A node's port without its node: what it would ask of it is written down, or forgotten."""

from collections.abc import Callable, Iterable
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.net.links.turn import Turn
from cubecast.net.node.absence import Members


def forget(*_: Any) -> None: ...


class Alone:
    """A `Host` whose machine is a function."""

    def __init__(
        self,
        call: Callable[..., Any] = forget,
        hold_back: Callable[[Topic], Any] = forget,
        let_through: Callable[[Topic], Any] = forget,
        envelope_bytes: Callable[[Topic], int] = lambda topic: 0,
    ) -> None:
        self.turn = Turn()
        self.call, self.hold_back, self.let_through, self.envelope_bytes = call, hold_back, let_through, envelope_bytes

    def reaches(self, topic: Topic) -> bool:
        return False

    def members(self) -> Members:
        return {}

    def reach(self, nodes: Iterable[NodeId]) -> None: ...

    def on_new_incarnation(self, incarnation: int) -> None: ...

    def status(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...
