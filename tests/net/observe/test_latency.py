"""Latencies measured between nodes whose clocks differ, over links that take their time. No clock ticks here."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.net.observe import latency
from cubecast.net.observe.latency import DRIFT, Latency
from support.asking import HTTP
from support.cluster import cluster
from support.running import run, until


class Clock:
    """Shared time, and by how much each node's clock is ahead."""

    def __init__(self) -> None:
        self.time = 100.0
        self.ahead = 0.0

    def __call__(self) -> float:
        return self.time + self.ahead


class Pair:
    """Node 0 publishes, node 1 delivers; what they say to each other waits until it is carried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        monkeypatch.setattr(latency, "monotonic", self.clock)
        self.has_delivered = False
        self.notes: list[tuple[int, bytes]] = []
        self.ahead = (0.0, 5000.0)
        self.recent: list[Any] = []
        self.nodes = [self._node(0), self._node(1)]

    def _node(self, number: int) -> Latency:
        def send(peer: int, data: bytes) -> bool:
            self.notes.append((peer, data))
            return True

        machine = SimpleNamespace(node=number, incarnation=0)
        inspector = SimpleNamespace(machine=machine, has_delivered=lambda topic, message: self.has_delivered)
        meter: Any = SimpleNamespace(inspector=inspector, recent=self.recent)
        return Latency(meter, send, lambda topic: [0, 1])

    def carry(self, seconds: float) -> None:
        peer, data = self.notes.pop(0)
        self.clock.time += seconds
        self.clock.ahead = self.ahead[peer]
        self.nodes[peer].on_note(1 - peer, data)
        self.clock.ahead = 0.0

    def deliver(self, counter: int, at: float) -> None:
        self.recent.append(("t", MessageId(0, 0, counter), 1, at + self.ahead[1]))


def test_clocks_that_differ_do_not_matter(monkeypatch):
    async def main():
        pair = Pair(monkeypatch)
        pair.deliver(1, at=100.030)
        pair.nodes[0].on_stable(100.0, "t", 1, 100.0)
        pair.carry(0.1)
        pair.carry(0.1)
        (publisher, _) = pair.nodes
        assert publisher.histogram.sum == pytest.approx(0.030) and publisher.uncertainty.sum == pytest.approx(0.1)

    run(main())


def test_the_fastest_round_trip_counts_not_a_busy_one(monkeypatch):
    async def main():
        pair = Pair(monkeypatch)
        publisher = pair.nodes[0]
        pair.deliver(1, at=100.030)
        publisher.on_stable(100.0, "t", 1, 100.0)
        pair.carry(0.001)
        pair.carry(0.001)
        pair.deliver(2, at=pair.clock.time + 1.050)
        publisher.on_stable(pair.clock.time, "t", 2, pair.clock.time + 1.0)
        pair.carry(1.1)
        pair.carry(0.0001)  # the way back was faster: taken for itself, this exchange would be wrong by 0.55 s
        assert publisher.histogram.sum == pytest.approx(0.080, abs=0.001)
        assert publisher.uncertainty.sum == pytest.approx(0.002 + 1.1 * DRIFT, rel=0.02)

    run(main())


def test_who_holds_it_is_asked_again_and_who_forgot_is_given_up(monkeypatch):
    async def main():
        pair = Pair(monkeypatch)
        publisher = pair.nodes[0]
        again: list[Any] = []
        monkeypatch.setattr(
            publisher, "_loop", SimpleNamespace(call_later=lambda _, ask, number: again.append((ask, number)))
        )
        publisher.on_stable(100.0, "t", 1, 100.0)
        pair.carry(0.001)
        pair.carry(0.001)
        assert publisher.histogram.count == 0 and len(again) == 1
        pair.deliver(1, at=100.500)
        pair.clock.time = 100.600
        ask, number = again.pop()
        ask(number)
        pair.carry(0.001)
        pair.carry(0.001)
        assert publisher.histogram.sum == pytest.approx(0.5)
        pair.has_delivered = True
        publisher.on_stable(102.0, "t", 2, 102.0)
        pair.carry(0.001)
        pair.carry(0.001)
        assert (publisher.given_up, publisher.histogram.count) == (1, 1)

    run(main())


def test_who_never_answers_is_given_up_and_keeps_nobody_from_being_asked(monkeypatch):
    """A member that does not observe; with a few hundred questions open, nobody at all was asked any more."""

    async def main():
        pair = Pair(monkeypatch)
        publisher = pair.nodes[0]
        for second in range(latency.MOST_OPEN + 40):
            pair.clock.time = 100.0 + second
            publisher.on_stable(pair.clock.time, "t", 1 + second, pair.clock.time)
        assert publisher.given_up > latency.MOST_OPEN
        pair.notes.clear()
        pair.clock.time += 1.0
        published = pair.clock.time
        pair.deliver(1000, at=published + 0.030)
        publisher.on_stable(published, "t", 1000, published)
        pair.carry(0.1)
        pair.carry(0.1)
        assert publisher.histogram.sum == pytest.approx(0.030)

    run(main())


def test_notes_nobody_may_send(monkeypatch):
    async def main():
        pair = Pair(monkeypatch)
        for nonsense in (b"", b"\x00", b"\x93\x01\x02\x03", b"\xff" * 100):
            with pytest.raises(RemoteProtocolError):
                pair.nodes[0].on_note(1, nonsense)
        assert not pair.notes

    run(main())


def test_between_living_nodes():
    async def main():
        async with cluster(2, http=HTTP) as (one, two), two.subscribe("t") as heard:
            await heard.ready()
            loop = asyncio.get_running_loop()
            started = loop.time()
            await one.publish("t", "x", wait="stable")
            measured = one._live.observer.latency
            await until(lambda: measured.histogram.count)
            # To within half a round trip, which here is as long as the way itself.
            assert 0 <= measured.histogram.sum < loop.time() - started
            assert measured.given_up == 0 and measured.uncertainty.sum > 0

    run(main())


def test_who_sends_such_notes_is_cut_off_and_comes_back():
    async def main():
        async with cluster(2, http=HTTP) as (one, two):
            one._live.life.peers.send_note(two.id, b"nonsense")
            seen = two._live.observer
            await until(lambda: seen.happenings.counts["refused-frame"])
            await until(lambda: two._live.link_to(one.id) is not None and seen.reconnects)

    run(main())
