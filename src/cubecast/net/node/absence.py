"""Who is away: for publishers that want to know whether everybody has a message, also those who are cut off.

A member that is held faulty may live. While it is away nothing reaches it, and nothing is kept for it. So with the
setting `partition.stable = "everybody"` a message counts as stable only when, besides, every process that took part, or
was away, when the publisher began to wait is still here in the same life, or is known to be gone: it said goodbye,
nothing listens at its address any more, or another process has its id. Follows decision 0069.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple

from cubecast.errors import OutcomeUnknown
from cubecast.ids import Incarnation, NodeId, Topic

PROOF_TAKES: Final = 3.0
"""Seconds in which a process that is gone is found to be: its host refuses calls."""
LOOKED_AFTER: Final = 0.1


class Member(NamedTuple):
    """What this node knows of another one's process."""

    instance: bytes
    """Of the process; empty when it was never heard of."""
    life: Incarnation | None
    """As which it takes part; none while it is held faulty, or before it came."""
    is_gone: bool


Members = Mapping[NodeId, Member]


class Lacking(NamedTuple):
    """Who may lack what was published between two looks at the members."""

    silent: list[NodeId]
    returned: list[NodeId]

    def __str__(self) -> str:
        parts = (
            (self.silent, "cut off or down, and may lack it"),
            (self.returned, "back after having been held faulty, and may have missed it"),
        )
        return "; ".join(f"{_nodes(nodes)} {what}" for nodes, what in parts if nodes)


def _nodes(nodes: list[NodeId]) -> str:
    return f"node {nodes[0]} is" if len(nodes) == 1 else f"nodes {', '.join(map(str, nodes))} are"


def lacking(before: Members, now: Members) -> Lacking:
    silent, returned = [], []
    for node, member in sorted(now.items()):
        was = before.get(node)
        if was is not None and was.instance and was.instance != member.instance:
            continue  # that process ended: its id belongs to another one
        if member.life is None:
            if not member.is_gone:
                silent.append(node)
        elif was is not None and was.life != member.life:
            returned.append(node)
    return Lacking(silent, returned)


async def reached_everybody(
    topic: Topic,
    stable: Awaitable[None],
    before: Members,
    look: Callable[[], Members],
    call: Callable[[Iterable[NodeId]], object],
) -> None:
    """Wait until it is stable and no member is away; `OutcomeUnknown` names those who are. `call` dials nodes."""
    await stable
    loop = asyncio.get_running_loop()
    late = loop.time() + PROOF_TAKES
    while any(missing := lacking(before, look())):
        if missing.returned or loop.time() >= late:
            raise OutcomeUnknown(f"{topic}: everybody who is here has it; {missing}")
        call(missing.silent)
        await asyncio.sleep(LOOKED_AFTER)
