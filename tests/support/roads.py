"""Live nodes with roads between them on which traffic can be held: where effects overtake their causes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import permutations
from random import Random
from typing import Any

from cubecast.addresses import Address
from cubecast.api.node import Node
from cubecast.experiments.live_faults.link_proxy import Direction, LinkProxy
from support.ports import free_addresses

OVERTAKING = (0, 1, 3)
"""Node 0 sends to 1 and to 3, node 3 to 1: what 3 answers to 0 reaches 1 even while the road from 0 to 1 is held."""


class Roads:
    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self._proxies: dict[tuple[int, int], LinkProxy] = {}

    async def build(self, stack: AsyncExitStack, ids: Sequence[int], **options: Any) -> None:
        places = {node: Address.parse(text) for node, text in zip(ids, free_addresses(len(ids)), strict=True)}
        through: dict[int, dict[int, Address]] = {node: {} for node in ids}
        for one, other in permutations(ids, 2):
            proxy = self._proxies[one, other] = LinkProxy(places[other], Random(0))
            stack.callback(proxy.close)
            through[one][other] = await proxy.open()
        for node in ids:
            join = [str(places[ids[0]])] if node != ids[0] else []
            made = Node(node=node, listen=str(places[node]), join=join, dial_through=through[node], **options)
            self.nodes[node] = await stack.enter_async_context(made)

    def hold(self, one: int, other: int) -> None:
        """Nothing arrives at the other any more from the one; the way back stays open."""
        self._proxies[one, other].conditions[Direction.THERE].standing = True
        self._proxies[other, one].conditions[Direction.BACK].standing = True

    def free(self) -> None:
        for proxy in self._proxies.values():
            proxy.heal()


@asynccontextmanager
async def roads(ids: Sequence[int] = OVERTAKING, **options: Any) -> AsyncIterator[Roads]:
    """Nobody is taken for dead while a road is held."""
    patient = {"round_length": 0.05, "retry": 0.1, "patience": 30.0, "dimension": 2}
    async with AsyncExitStack() as stack:
        built = Roads()
        await built.build(stack, ids, **patient | options)
        stack.callback(built.free)
        yield built
