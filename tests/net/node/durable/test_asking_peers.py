"""Filling a log from several peers: all are asked at once, the one with the most is read, holes are taken last."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from cubecast.addresses import Address
from cubecast.errors import NotKept, Unreachable
from cubecast.ids import MessageId
from cubecast.log.history import History
from cubecast.net.node.durable import refill
from cubecast.net.node.durable.catch_up import CatchUp, PeerLog, fetch_all, look
from cubecast.net.node.durable.refill import Holding, Refill, Surroundings
from cubecast.net.port.port import GapNotice, Run
from support.memory_log import MemoryLog
from support.running import run, until

PEERS = 15


class Peer:
    """A port to a peer whose log has some of one publisher's messages."""

    def __init__(self, *pieces: range) -> None:
        self.pieces, self.asked = pieces, 0
        self.node = "a peer"

    @property
    def known(self) -> Mapping[tuple[str, int, int], int]:
        return {("t", 0, 0): self.pieces[-1][-1]}

    def log(self) -> PeerLog:
        return PeerLog(b"", self, (">",), self.known)  # type: ignore[arg-type]

    def subscribe(self, pattern, sink, since=None):
        self.asked += 1
        last = dict(since.cut).get(("t", 0, 0), 0)
        for piece in self.pieces:
            news = [number for number in piece if number > last]
            if news and news[0] > last + 1:
                hole = Run(0, 0, last + 1, news[0] - 1)
                sink.on_gap(GapNotice("t", (), "it has not got them", (hole,), news[0] - 1 - last))
            if news:
                sink.on_batch("t", MessageId(0, 0, news[0]), [b"%d" % number for number in news])
                last = news[-1]
        sink.on_live({})
        return 1

    def unsubscribe(self, number: int) -> None: ...


def filled_from(peers: Sequence[Peer], monkeypatch) -> list[object]:
    monkeypatch.setattr(refill, "SETTLING", 0.0)
    got: list[object] = []

    async def main() -> bool:
        def deliver(topic, first, payloads):
            got.extend(range(first.counter, first.counter + len(payloads)))

        around = Surroundings(dict, Answering, deliver, got.append, lambda: True, lambda: True)
        filling = Refill(History(MemoryLog()), Holding(None), around)
        return await fetch_all(filling, [peer.log() for peer in peers])

    assert run(main()) is any(peers)
    return got


def test_the_peer_with_the_most_is_read_and_nobody_else_is_bothered(monkeypatch):
    few, many, same = Peer(range(1, 11)), Peer(range(1, 42)), Peer(range(1, 42))
    assert filled_from([few, many, same], monkeypatch) == list(range(1, 42))
    assert (few.asked, many.asked, same.asked) == (0, 1, 0)


def test_what_one_peer_lacks_is_had_from_another_one_before_anybody_hears_of_a_gap(monkeypatch):
    torn, whole = Peer(range(1, 11), range(20, 42)), Peer(range(1, 31))
    assert filled_from([torn, whole], monkeypatch) == list(range(1, 42))


def test_what_nobody_has_is_a_gap_in_its_place_and_the_rest_follows(monkeypatch):
    one, other = Peer(range(1, 11), range(20, 42)), Peer(range(1, 13), range(20, 31))
    got = filled_from([one, other], monkeypatch)
    (gap,) = [event for event in got if isinstance(event, GapNotice)]
    assert got == [*range(1, 13), gap, *range(20, 42)]
    assert gap.runs == (Run(0, 0, 13, 19),) and gap.count == 7


class Answering:
    """Instead of a thin client: a peer that answers only when all have been called."""

    called = 0
    all_called: asyncio.Event
    silent: frozenset[int] = frozenset()

    def __init__(self, address, *, fills, **_):
        assert fills, "nodes that fill their own logs would not answer"
        self._address = address
        self.is_closed = False

    async def start(self, timeout: float) -> None:
        Answering.called += 1
        if Answering.called == PEERS:
            self.all_called.set()
        await self.all_called.wait()
        if self._address.port in self.silent:
            raise Unreachable("nobody is there")

    def subscribe(self, pattern, sink, since=None):
        if self._address.port % 2:
            sink.on_end(NotKept("this node keeps no log"))
        else:
            sink.on_live({("t", 0, 0): self._address.port})
        return 1

    def unsubscribe(self, number: int) -> None: ...
    async def log_topics(self, after: str = ""):
        raise NotKept("this node keeps no log")

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def answering(monkeypatch):
    Answering.called = 0
    return Answering


def test_all_peers_are_asked_before_any_of_them_has_answered(answering):
    async def main():
        answering.all_called = asyncio.Event()
        answering.silent = frozenset({4, 5})
        members = {b"%d" % number: Address("peer", number) for number in range(PEERS)}
        around = Surroundings(dict, Answering, lambda *_: None, lambda _: None, lambda: True, lambda: True)
        found = await look(members, [">"], around, "test")
        assert {one.instance for one in found} == members.keys() - {b"4", b"5"}
        assert [dict(one.known) for one in found if one.instance in (b"3", b"6")] == [{}, {("t", 0, 0): 6}]
        assert [one.patterns for one in found if one.instance in (b"3", b"6")] == [(), (">",)]

    run(main())


def test_members_that_did_not_answer_or_come_later_are_asked_again(answering, monkeypatch):
    """Those that answered are not."""
    asked: list[set[bytes]] = []

    async def looking(members, *_):
        asked.append(set(members))
        return [PeerLog(one, Peer(range(1, 2)), (), {}) for one in members if len(asked) > 1 or one != b"late"]

    monkeypatch.setattr("cubecast.net.node.durable.catch_up.look", looking)
    monkeypatch.setattr("cubecast.net.node.durable.catch_up.ASK_AGAIN_AFTER", 0.01)
    monkeypatch.setattr(Peer, "close", lambda self: asyncio.sleep(0), raising=False)

    async def main():
        members = {b"one": Address("a", 1), b"late": Address("a", 2)}
        catch_up = CatchUp(History(MemoryLog()), [">"], None)
        around = Surroundings(lambda: members, Answering, lambda *_: None, lambda _: None, lambda: True, lambda: True)
        catch_up.hold()
        await catch_up.fill("test", around)
        assert not catch_up.is_filling
        await until(lambda: len(asked) == 2)
        members[b"new"] = Address("a", 3)
        catch_up.member_came()
        await until(lambda: len(asked) == 3)
        catch_up.close()
        assert asked == [{b"one", b"late"}, {b"late"}, {b"new"}]

    run(main())
