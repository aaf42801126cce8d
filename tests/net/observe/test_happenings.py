"""Recent events: bounded, the same thing listed once."""

from cubecast.net.observe.recent import MOST_HAPPENINGS, Happenings


def test_the_same_within_a_second_is_counted_not_listed():
    times = iter([1.0, 1.2, 1.3, 1.9, 2.5])
    happened = Happenings(lambda: next(times))
    happened("gap", None, "first", "a")
    happened("gap", None, "second", "a")
    happened("gap", None, "of another topic", "b")
    happened("gap", None, "third", "a")
    happened("gap", None, "later", "a")
    listed = [(one["detail"], one["count"]) for one in happened.newest_first()]
    assert listed == [("later", 1), ("of another topic", 1), ("first", 3)]
    assert happened.counts == {"gap": 5}


def test_a_clock_that_is_set_back_hides_nothing():
    times = iter([5000.0, 1000.0, 1000.5])
    happened = Happenings(lambda: next(times))
    for detail in ("before", "after", "again"):
        happened("disconnected", 3, detail)
    assert [(one["detail"], one["count"]) for one in happened.newest_first()] == [("after", 2), ("before", 1)]


def test_the_list_has_an_end():
    now = [0.0]
    happened = Happenings(lambda: now[0])
    for number in range(2 * MOST_HAPPENINGS):
        now[0] += 2
        happened("disconnected", number, "closed")
    assert (
        len(happened.newest_first()) == MOST_HAPPENINGS
        and happened.newest_first()[0]["node"] == 2 * MOST_HAPPENINGS - 1
    )
