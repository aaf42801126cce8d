"""From acceptance to stability, in bounded memory."""

from sys import getsizeof

import pytest

from cubecast.errors import Closed, OutcomeUnknown
from cubecast.net.node.outgoing import Outgoing
from support.running import run


def test_the_budget_is_used_up_and_given_back():
    async def main():
        out = Outgoing("t", 10)
        assert out.accept([b"12345", b"678901"]) == 2
        assert not out.has_room
        room = out.room()
        assert not room.done()
        assert out.take() == [b"12345", b"678901"]
        out.published = 2
        out.acknowledged(1)
        assert not room.done(), "the batch is not stable as a whole"
        out.acknowledged(2)
        assert room.done() and out.has_room

    run(main())


def test_who_waits_for_stability_is_told_in_order():
    async def main():
        out = Outgoing("t", 100)
        out.accept([b"a", b"b", b"c"])
        first, last = out.when_stable(1), out.when_stable(3)
        out.take()
        out.published = 3
        out.acknowledged(2)
        assert first.done() and not last.done()
        out.acknowledged(3)
        await last
        assert out.when_stable(3).done()

    run(main())


def test_after_a_new_incarnation_the_outcome_is_unknown_and_counting_goes_on():
    async def main():
        out = Outgoing("t", 100)
        out.accept([b"a", b"b"])
        lost = out.when_stable(2)
        out.take()
        out.published = 2
        out.restarted()
        with pytest.raises(OutcomeUnknown):
            await lost
        out.accept([b"c"])
        out.take()
        out.published = 3
        kept = out.when_stable(3)
        out.acknowledged(1)
        await kept

    run(main())


def test_closing_ends_all_waiting():
    async def main():
        out = Outgoing("t", 1)
        out.accept([b"a"])
        waiting = [out.when_stable(1), out.room()]
        out.close(Closed("over"))
        for one in waiting:
            with pytest.raises(Closed):
                await one

    run(main())


def test_what_nobody_knows_is_not_called_stable_later():
    async def main():
        out = Outgoing("t", 100)
        out.accept([b"a", b"b"])
        out.take()
        out.published = 2
        out.acknowledged(1)
        out.restarted()
        await out.when_stable(1)
        with pytest.raises(OutcomeUnknown):
            await out.when_stable(2)
        out.accept([b"c"])
        out.close(Closed("over"))
        with pytest.raises(Closed):
            await out.when_stable(3)

    run(main())


@pytest.mark.interpreted
def test_a_topic_at_rest_takes_little():
    """Nobody forgets a topic that was published on: what it needs while something is under way goes with that."""
    out = Outgoing("t", 1000)
    fresh = sum(map(getsizeof, (getattr(out, name) for name in Outgoing.__slots__)))
    for _ in range(20):
        out.accept([b"x" * 10])
        out.take()
        out.published += 1
    out.acknowledged(20)
    assert out.bytes == 0 and out.stable == 20
    assert sum(map(getsizeof, (getattr(out, name) for name in Outgoing.__slots__))) <= fresh + 64 < 900
