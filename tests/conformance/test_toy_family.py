"""A family in one file, flooding with a counter: it is simulated, tormented, judged and run live without a change
anywhere else. Its name is where it is declared."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from aiohttp import ClientSession

import cubecast
from cubecast.check.checker import check_trace
from cubecast.check.verdict import Verdict
from cubecast.errors import BadInput, HandedOver, LocalProtocolError, RemoteProtocolError
from cubecast.experiments.swarm import swarm
from cubecast.ids import MessageId
from cubecast.protocol.contract import Handlers, Packet
from cubecast.protocol.effects import Deliver, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.family import Family, Nemesis, Population, Seat, Setup
from cubecast.protocol.parameters import check_parameters, parameter
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_memory
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect
from cubecast.trace.reader import Trace, read_trace
from support.running import run

PATHS = ("/", "/api/cube.json", "/api/topics.json", "/api/held.json", "/metrics", "/readyz", "/status.json")
NAME = "conformance.test_toy_family:FLOOD"


@dataclass(frozen=True)
class FloodParameters:
    copies: int = parameter(1, "how often each message is sent to each neighbour", least=1, most=9)

    def __post_init__(self) -> None:
        check_parameters(self)


@dataclass(slots=True)
class Flooded(Packet):
    topic: str
    message: MessageId
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True


class Flood(Handlers):
    """Whoever gets a batch for the first time sends it to everybody else; batches of one source go in its order."""

    def __init__(self, seat: Seat, peers: Sequence[int], topics: Sequence[str], parameters: FloodParameters) -> None:
        self.node, self.incarnation, self.copies = seat.node, seat.incarnation, parameters.copies
        self.peers = dict.fromkeys(peer for peer in (*peers, *seat.contacts) if peer != seat.node)
        self.topics = dict.fromkeys(topics)
        self.published: dict[str, int] = {}
        self.next: dict[tuple[Any, ...], int] = {}
        self.early: dict[tuple[Any, ...], dict[int, Flooded]] = {}

    def on_start(self, now):
        return []

    def on_peer_up(self, now, peer):
        self.peers[peer] = None
        return []

    def on_peer_down(self, now, peer):
        self.peers.pop(peer, None)
        return []

    def publish(self, now, topic, payloads, *, hurry=False):
        first = self.published.get(topic, 0) + 1
        self.published[topic] = first + len(payloads) - 1
        packet = Flooded(topic, MessageId(self.node, self.incarnation, first), tuple(payloads))
        effects = [Published(topic, first, len(payloads), ())]
        return effects + self._take(packet)

    def subscribe(self, now, topic):
        if topic in self.topics:
            raise LocalProtocolError(f"subscribed to {topic!r} already")
        self.topics[topic] = None
        return [Subscribed(topic)]

    def unsubscribe(self, now, topic):
        if topic not in self.topics:
            raise LocalProtocolError(f"not subscribed to {topic!r}")
        del self.topics[topic]
        return [Unsubscribed(topic)]

    def on_packet(self, now, sender, packet):
        if type(packet) is not Flooded or not packet.payloads or packet.message.counter < 1:
            raise RemoteProtocolError(f"node {sender} sent what is no flood")
        return self._take(packet)

    def _take(self, packet: Flooded):
        source = (packet.topic, *packet.message[:2])
        early = self.early.setdefault(source, {})
        counter = packet.message.counter
        if counter < self.next.get(source, 1) or counter in early:
            return []
        early[counter] = packet
        effects = [Send(tuple(self.peers), packet)] * self.copies if self.peers else []
        while (ripe := early.pop(self.next.get(source, 1), None)) is not None:
            self.next[source] = ripe.message.counter + len(ripe.payloads)
            if ripe.topic in self.topics:
                effects.append(Deliver(ripe.topic, ripe.message, ripe.payloads))
        return effects

    def invariants(self):
        assert all(min(early) > self.next.get(source, 1) for source, early in self.early.items() if early)

    def waiting(self):
        return [f"messages of {source} before {sorted(early)}" for source, early in self.early.items() if early]


def _make(setup: Setup, parameters: FloodParameters):
    def make(seat: Seat) -> Flood:
        mine = [topic for topic, nodes in setup.settled.items() if seat.node in nodes and not seat.incarnation]
        return Flood(seat, setup.nodes, mine, parameters)

    return make


FLOOD = Family(
    name="flood",
    summary="everything goes to everybody",
    promises=("K0", "P1", "P2", "P5"),
    packets=(Flooded,),
    make=_make,
    parameters=FloodParameters,
    population=Population(1, 1000),
    nemesis=Nemesis(("delay", "reorder", "slow", "duplicate", "crash"), joins=True, outsiders=True),
    frees=Published,
    described="this file",
)


@pytest.mark.parametrize("nodes", [1, 3, 100])
def test_it_is_simulated_with_any_number_of_nodes_and_judged(nodes: int):
    config = SimConfig(NAME, nodes=nodes, publishers="1", messages=2, propagation="uniform:10:300", coded=True)
    info, events, figures = simulate_to_memory(config)
    report = check_trace(Trace(info, events))
    assert report.verdict is Verdict.VALID and report.deliveries == nodes * 2 == figures["deliveries"]


def test_it_survives_node_churn():
    config = SimConfig(NAME, nodes=20, workload="periodic:40", window=4000.0, churn_nodes="20%/1000", seed=3)
    info, events, _ = simulate_to_memory(config)
    starts = [event for event in events if event.kind == "start"]
    assert {event.incarnation for event in starts} > {0} and len(starts) > 25
    assert check_trace(Trace(info, events)).verdict is Verdict.VALID


def test_it_is_tormented():
    *_, tally = swarm(NAME, 1, 100)
    assert tally.failure is None and tally.deliveries > 1000


async def connected(*nodes: cubecast.Node) -> None:
    """Wait until every node has links to all others."""
    async with asyncio.timeout(60):
        for node in nodes:
            while sum(member["connected"] for member in (await node.status())["members"]) < len(nodes):
                await asyncio.sleep(0)


def test_it_runs_live_with_thin_clients_a_journal_and_pages(tmp_path):
    async def main() -> None:
        options: dict[str, Any] = {"protocol": NAME, "parameters": {"copies": "2"}, "journal": tmp_path / "journals"}
        async with AsyncExitStack() as stack:
            ann = await stack.enter_async_context(cubecast.Node(**options, http="127.0.0.1:0"))
            others = [await stack.enter_async_context(cubecast.Node(**options, join=[ann.address])) for _ in range(2)]
            nodes = (ann, *others)
            await connected(*nodes)
            heard = [node.subscribe("chat", gaps="raise") for node in nodes]
            thin = await stack.enter_async_context(cubecast.connect(others[0].address))
            heard.append(thin.subscribe("chat", gaps="raise"))
            for one in heard:
                await one.ready()
            for number in range(20):
                await nodes[number % 3].publish("chat", number)
            await thin.publish("chat", "last")
            for one in heard:
                got = [(await one.next(30)).data for _ in range(21)]
                assert sorted(map(str, got)) == sorted(map(str, [*range(20), "last"]))
            for client in (ann, thin):
                with pytest.raises(HandedOver, match="quiet: handed over; flood"):
                    await client.publish("quiet", 1, wait="stable")
            await thin.publish("quiet", "its connection is as it was")
            with pytest.raises(BadInput, match="follows no patterns"):
                ann.subscribe("chat.>")
            async with ClientSession() as session:
                for path in (
                    "/",
                    "/api/cube.json",
                    "/api/topics.json",
                    "/api/held.json",
                    "/metrics",
                    "/readyz",
                    "/status.json",
                ):
                    async with session.get(f"http://{(await ann.status())['http']}{path}") as answer:
                        assert answer.status == 200, path

    run(main())
    family = FLOOD
    collect(tmp_path / "journals", tmp_path / "trace", RunInfo("live", family.name, family.promises))
    report = check_trace(read_trace(tmp_path / "trace"))
    assert report.verdict is Verdict.VALID and report.deliveries == 63


def test_nodes_that_run_something_else_are_refused_in_one_line():
    async def main() -> None:
        async with cubecast.Node() as cube, cubecast.Node(protocol=NAME) as flood:
            for node, options in ((cube, {"protocol": NAME}), (flood, {})):
                other = cubecast.Node(join=[node.address], **options)
                with pytest.raises(BadInput, match=r"this cluster runs .*: start with --protocol"):
                    await other.start()

    run(main())
