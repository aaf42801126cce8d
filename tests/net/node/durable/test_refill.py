"""Filling a log from a peer's: how long is waited for what the peer has not got yet itself."""

import asyncio

from cubecast.ids import MessageId
from cubecast.log.history import History
from cubecast.net.node.durable.refill import SILENT_FOR, UNCOVERED_FOR, Holding, Refill, Surroundings
from support.memory_log import MemoryLog
from support.replays import turns
from support.running import run, until


class Peer:
    """A port; its log says what the test says."""

    sink = None

    def subscribe(self, pattern, sink, since):
        self.sink = sink
        return 1

    def unsubscribe(self, number):
        pass


def test_a_node_that_stood_still_itself_waits_for_its_peer_all_the_same(monkeypatch):
    async def main():
        loop, stood_still = asyncio.get_running_loop(), 0.0
        clock = loop.time
        monkeypatch.setattr(loop, "time", lambda: clock() + stood_still)
        held, got, peer = Holding(None), [], Peer()
        held.put("t", MessageId(0, 0, 3), [b"3"])
        around = Surroundings(dict, None, lambda *one: got.append(one), got.append, lambda: True, lambda: True)
        refill = Refill(History(MemoryLog(), recent=0), held, around)
        fetching = asyncio.create_task(refill.fetch(peer, "t"))
        await until(lambda: peer.sink)
        stood_still += 2 * SILENT_FOR
        await turns()
        assert not fetching.done(), "the peer was not silent"
        peer.sink.on_live({})
        stood_still += 2 * UNCOVERED_FOR
        await turns()
        assert not fetching.done(), "what is missing may have come meanwhile, and was not read"
        peer.sink.on_batch("t", MessageId(0, 0, 1), [b"1", b"2"])
        await fetching
        await refill.release()
        assert [(first.counter, payloads) for _, first, payloads in got] == [(1, [b"1", b"2"]), (3, [b"3"])]

    run(main())
