"""Barriers, the pending buffer and vector clocks, each against the dumbest thing that could work."""

from hypothesis import given
from hypothesis import strategies as st

from cubecast.ids import MessageId
from cubecast.protocol.order import (
    CausalBarrier,
    Groups,
    PendingBuffer,
    concurrent,
    deliverable,
    grouped,
    happened_before,
    zero,
)
from cubecast.protocol.order import merge as merge_clocks

MESSAGES = st.integers(0, 30)


# Barriers: a random history of one group, in which everybody sees all messages in one order.


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 29), max_size=4)), max_size=30))
def test_a_barrier_holds_exactly_the_maximal_causes(script):
    """Message k is published by somebody who delivered some earlier messages; its barrier names their maxima."""
    causes: list[set[int]] = []  # of each message, all of them
    nodes: dict[int, tuple[CausalBarrier, set[int]]] = {n: (CausalBarrier(), set()) for n in range(4)}
    sent: list[tuple[MessageId, Groups]] = []
    for publisher, hears_of in script:
        barrier, past = nodes[publisher]
        for k in sorted(m for m in hears_of if m < len(causes)):
            for message in sorted(causes[k] | {k}):  # in an order that respects causes
                if message not in past:
                    past.add(message)
                    (source, _, counter), its_barrier = sent[message]
                    barrier.delivered(1 << source, counter, its_barrier)
        direct = {m for m in past if not any(m in causes[other] for other in past)}
        counter = 1 + sum(message.source == publisher for message, _ in sent)
        stamped = barrier.publish(1 << publisher, counter)
        assert stamped == grouped(sent[m][0] for m in direct)
        causes.append(set(past))
        past.add(len(causes) - 1)
        sent.append((MessageId(publisher, 0, counter), stamped))


def test_a_new_barrier_is_empty_and_an_own_message_replaces_it():
    barrier = CausalBarrier()
    assert barrier.publish(1 << 5, 1) == ()
    barrier.delivered(1 << 3, 7, ())
    assert barrier.publish(1 << 5, 2) == ((1, 1 << 5), (7, 1 << 3))
    assert barrier.publish(1 << 5, 3) == ((2, 1 << 5),)


def test_dependencies_are_grouped_by_counter():
    assert grouped([MessageId(2, 0, 4), MessageId(0, 1, 4), MessageId(9, 0, 1)]) == ((1, 1 << 9), (4, 0b101))


# The pending buffer against a list that is scanned again and again.


class DumbBuffer:
    def __init__(self) -> None:
        self.held: list[tuple[str, int, int]] = []

    def release(self, publisher: str, counter: int) -> list[int]:
        hit = [entry for entry in self.held if entry[0] == publisher and entry[1] <= counter]
        self.held = [entry for entry in self.held if entry not in hit]
        return [message for _, _, message in sorted(hit, key=lambda entry: entry[1])]


PUBLISHERS = st.sampled_from("pqr")
STEPS = st.lists(st.tuples(st.sampled_from(["hold", "hold", "release"]), PUBLISHERS, st.integers(1, 6)), max_size=40)


@given(STEPS)
def test_the_pending_buffer_behaves_like_a_rescanned_list(steps):
    buffer: PendingBuffer[str, int] = PendingBuffer()
    dumb = DumbBuffer()
    for message, (step, publisher, counter) in enumerate(steps):
        if step == "hold":
            buffer.hold(publisher, counter, message)
            dumb.held.append((publisher, counter, message))
        else:
            assert buffer.release(publisher, counter) == dumb.release(publisher, counter)
        assert len(buffer) == len(dumb.held)
        assert bool(buffer) == bool(dumb.held)
        assert sorted(buffer.entries()) == sorted(dumb.held)


def test_a_cleared_buffer_holds_nothing():
    buffer: PendingBuffer[int, str] = PendingBuffer()
    buffer.hold(1, 2, "m")
    buffer.clear()
    assert not buffer and buffer.release(1, 9) == []


# Vector clocks

CLOCKS = st.integers(1, 5).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 3)  # type: ignore[arg-type]
)


@given(CLOCKS)
def test_happened_before_is_a_strict_partial_order(clocks):
    a, b, c = clocks
    before = happened_before
    assert not before(a, a)
    assert not (before(a, b) and before(b, a))
    assert not (before(a, b) and before(b, c)) or before(a, c)
    assert concurrent(a, b) == (not before(a, b) and not before(b, a) and a != b)


@given(CLOCKS)
def test_merge_is_the_least_upper_bound(clocks):
    a, b, _ = clocks
    merged = list(a)
    merge_clocks(merged, b)
    assert merged == [max(x, y) for x, y in zip(a, b, strict=True)]


def test_a_message_is_deliverable_when_it_is_next_and_its_past_is_here():
    clock = zero(3)
    assert clock == [0, 0, 0]
    assert deliverable([1, 0, 0], 0, clock)
    assert not deliverable([2, 0, 0], 0, clock)
    assert not deliverable([1, 0, 1], 0, clock)
    assert deliverable([1, 0, 1], 0, [0, 0, 1])
    assert not deliverable([1, 0, 0], 0, [1, 0, 0])
