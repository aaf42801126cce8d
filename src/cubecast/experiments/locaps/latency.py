"""One subscription in a network of brokers at rest: how long until it is known where it begins.

Every hop takes 50 ms and brokers take no time, as in the paper. A complete binary tree of depth h has diameter 2h.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.experiments.parallel import Runner
from cubecast.ids import NodeId
from cubecast.protocol.families import find
from cubecast.sim.network import Constant, Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import machines
from cubecast.sim.world import World
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind
from cubecast.wire.codec import codec_of

HOP = 50.0
TOPIC = "t"
PATTERN = "every topic that begins with t"
"""The name of the subscription that covers others."""


@dataclass(frozen=True)
class Point:
    """A subscriber, a publisher, and where a subscription that covers the new one is, if anywhere."""

    system: str
    brokers: int
    subscriber: NodeId
    publisher: NodeId
    covered_at: NodeId | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def subscription_latencies(runner: Runner, points: Sequence[Point]) -> list[float]:
    """From asking to knowing the cut, in milliseconds, for each point."""
    return [figures["latency"] for figures in runner(_run, [{"point": point} for point in points])]


def _run(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"latency": _subscription_latency(given["point"])}


def _subscription_latency(point: Point) -> float:
    rows: list[Event] = []
    world = _world(point, rows)
    world.start()
    world.publish(point.publisher, TOPIC, [b"known"])  # so that the publisher is known
    world.run()
    if point.covered_at is not None:
        world.subscribe(point.covered_at, PATTERN, f"topic ^= '{TOPIC}'")
        world.run()
    asked = world.now
    world.subscribe(point.subscriber, TOPIC)
    world.run()
    confirmed = [row.time for row in rows if row.kind == Kind.SUBSCRIBED and row.topic == TOPIC]
    return confirmed[0] - asked


def _world(point: Point, rows: list[Event]) -> World:
    family = find(point.system)
    nodes = range(point.brokers)
    make = machines(family, 1, point.brokers, nodes, {}, point.settings)
    network = Network(point.brokers, Constant(HOP), processing=0.0, transmission=0.0, fifo_links=True)
    return World(nodes, make, network, codec_of(family), recorder=Recorder(rows, packets=False))


def leaf(depth: int) -> NodeId:
    """The leftmost of a complete binary tree; its siblings follow."""
    return (1 << depth) - 1


def brokers(depth: int) -> int:
    return (1 << depth + 1) - 1


def towards_the_far_leaf(depth: int, hops: int) -> NodeId:
    """The broker so many hops from the leftmost leaf on the way to the rightmost one."""
    here = leaf(depth)
    for _ in range(min(hops, depth)):
        here = (here - 1) // 2
    for _ in range(hops - depth):
        here = 2 * here + 2
    return here


def on_binary_tree(
    system: str, depth: int, publisher: NodeId, covered_at: NodeId | None = None, **settings: Any
) -> Point:
    texts = {name: str(value) for name, value in settings.items()}
    return Point(system, brokers(depth), leaf(depth), publisher, covered_at, texts)
