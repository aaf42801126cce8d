"""The calendar queue against a binary heap."""

from heapq import heappop, heappush

from hypothesis import given
from hypothesis import strategies as st

from cubecast.sim.scheduler import Scheduler

DELAYS = st.floats(0, 50, allow_nan=False)


@given(st.lists(st.one_of(st.none(), DELAYS), max_size=200))
def test_events_come_out_as_from_a_heap(steps):
    """None pops, a number pushes an event that much later than the last one popped."""
    scheduler, heap, now = Scheduler(), [], 0.0
    for tie, delay in enumerate(steps):
        if delay is None:
            expected = heappop(heap) if heap else None
            assert scheduler.pop() == expected
            now = expected[0] if expected else now
        else:
            event = (now + delay, tie, "payload")
            scheduler.push(event)
            heappush(heap, event)
    while heap:
        assert scheduler.pop() == heappop(heap)
    assert scheduler.pop() is None


@given(st.lists(DELAYS, max_size=50), st.integers(0, 49))
def test_what_is_dropped_does_not_come_and_all_else_does(delays, popped):
    scheduler = Scheduler()
    events = [(delay, tie) for tie, delay in enumerate(delays)]
    for event in events:
        scheduler.push(event)
    left = sorted(events)[popped:]
    for _ in range(min(popped, len(events))):
        scheduler.pop()
    scheduler.drop(lambda event: event[1] % 2 == 0)
    assert list(iter(scheduler.pop, None)) == [event for event in left if event[1] % 2]


def test_ties_come_out_in_order_of_scheduling():
    scheduler = Scheduler()
    for tie in (2, 1, 3):
        scheduler.push((7.5, tie))
    assert [scheduler.pop() for _ in range(3)] == [(7.5, 1), (7.5, 2), (7.5, 3)]


@given(DELAYS, DELAYS, DELAYS)
def test_an_event_looked_at_and_put_back_does_not_hide_an_earlier_one(first, second, third):
    """What a run that stops at some time does: it pops, sees that it is too early, and pushes back."""
    scheduler = Scheduler()
    scheduler.push((100 + first, 1))
    event = scheduler.pop()
    scheduler.push(event)
    scheduler.push((second, 2))
    scheduler.push((100 + third, 3))
    expected = sorted([(100 + first, 1), (second, 2), (100 + third, 3)])
    assert [scheduler.pop() for _ in range(3)] == expected
