"""Publications that wait for company while processors are scarce: the pace, what is held, and what never is."""

import asyncio

import pytest

from cubecast.net.node.local_port import LocalPort
from cubecast.net.node.outgoing import COMPANY, HEAVY
from cubecast.net.node.pacing import LOOK_EVERY, MOST, SCARCE, STEEPNESS, Pace, ProcessorWaits
from cubecast.net.settings.config import NodeConfig
from support.cluster import cluster
from support.hosts import Alone
from support.running import run, until

LONG = 3600.0
"""No test waits until something held for so long leaves by itself."""


class MadeUp:
    """A thread that waits for a processor as a test says."""

    def __init__(self):
        self.closed = False

    def seconds(self):
        return 0.0

    def close(self):
        self.closed = True


def paced(share, seconds, pace=None, start=0.0):
    pace = pace or Pace(start, 0.0)
    for look in range(1, round(seconds / LOOK_EVERY) + 1):
        pace.observe(start + look * LOOK_EVERY, share * (start + look * LOOK_EVERY))
    return pace


# The pace


@pytest.mark.parametrize("share", [0.0, 0.12, SCARCE - 0.001])
def test_nothing_waits_while_processors_are_to_be_had(share):
    assert paced(share, 60).seconds == 0.0


def test_the_pace_grows_with_the_share_of_time_spent_waiting_and_is_bounded():
    assert paced(SCARCE + 0.1, 60).seconds == pytest.approx(0.1 * STEEPNESS)
    assert paced(1.0, 60).seconds == MOST


def test_the_pace_is_there_within_a_second_and_gone_within_another():
    pace = paced(0.9, 1)
    assert pace.seconds == MOST
    for look in range(1, 11):
        pace.observe(1 + look * LOOK_EVERY, 0.9)
    assert pace.seconds == 0.0


def test_one_long_look_counts_as_much_as_the_time_it_covers():
    pace = paced(0.9, 1)
    pace.observe(20.0, 0.9)
    assert pace.seconds == 0.0


def test_members_that_share_a_machine_settle_where_one_of_them_would():
    """What they wait depends on the pace of all; whoever began elsewhere comes to the same pace, and it rests."""
    first, second = Pace(0.0, 0.0), paced(1.0, 1)
    waited, steps = 0.0, []
    for look in range(1, 101):
        mean = (first.seconds + second.seconds) / 2
        waited += LOOK_EVERY * (0.56 - 0.1 * 1000 * mean / 3)
        first.observe(look * LOOK_EVERY, waited)
        second.observe(1 + look * LOOK_EVERY, 1.0 + waited)
        steps.append(first.seconds)
    assert 0 < first.seconds < MOST
    assert first.seconds == pytest.approx(second.seconds, rel=0.01)
    assert steps[-1] == pytest.approx(steps[-2], rel=0.01)


def test_time_that_does_not_pass_changes_nothing():
    pace = paced(0.9, 1)
    pace.observe(1.0, 5.0)
    assert pace.seconds == MOST


# What the kernel counts


def test_the_second_number_is_nanoseconds_of_waiting(tmp_path):
    file = tmp_path / "schedstat"
    file.write_text("7 2500000000 9\n")
    waits = ProcessorWaits(str(file))
    assert waits.seconds() == 2.5
    waits.close()


@pytest.mark.parametrize("text", ["", "7\n", "7 many 9\n"])
def test_a_file_that_says_something_else_is_refused(tmp_path, text):
    file = tmp_path / "schedstat"
    file.write_text(text)
    with pytest.raises((ValueError, IndexError)):
        ProcessorWaits(str(file))


# What is held


def a_held_port(config=None):
    """A port that handed something over a moment ago and holds everything that can wait; what it hands over."""
    calls = []
    port = LocalPort(config or NodeConfig(pacing=False), Alone(lambda *call: calls.append(call)))
    port.open()
    hold(port)
    return port, calls


def hold(port):
    port.publishing.departures.watch(MadeUp())
    port.publishing.departures._pace.seconds = LONG
    port.publishing.departures._last = port.publishing.departures._look_at = asyncio.get_running_loop().time()
    port.publishing.departures._look_at += LONG


async def a_few_turns():
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_is_held_leaves_together_in_order():
    async def main():
        port, calls = a_held_port()
        for number in range(3):
            port.publish("a", [b"a%d" % number])
            port.publish("b", [b"b%d" % number])
            await a_few_turns()
        assert calls == [] and port.publishing.departures.is_holding
        port.publishing.departures._let_go()
        assert calls == [
            ("publish", "a", [b"a0", b"a1", b"a2"], False),
            ("publish", "b", [b"b0", b"b1", b"b2"], False),
        ]

    run(main())


@pytest.mark.parametrize("later", [False, True], ids=["in the same turn", "while it is held"])
def test_what_somebody_waits_for_takes_everything_along_at_once(later):
    async def main():
        port, calls = a_held_port()
        port.publish("a", [b"x"])
        accepted = port.publish("b", [b"y"])
        if later:
            await a_few_turns()
            assert calls == []
        waiting = port.stable("b", accepted)
        await a_few_turns()
        assert calls == [("publish", "a", [b"x"], False), ("publish", "b", [b"y"], True)]
        assert not waiting.done()

    run(main())


@pytest.mark.parametrize("payloads", [[b"x"] * COMPANY, [bytes(HEAVY)]], ids=["many", "heavy"])
@pytest.mark.parametrize("later", [False, True], ids=["in one turn", "one after the other"])
def test_much_needs_no_company(payloads, later):
    async def main():
        port, calls = a_held_port()
        if later:
            port.publish("a", [b"first"])
            await a_few_turns()
            assert calls == []
        port.publish("a", payloads)
        await a_few_turns()
        assert len(calls) == 1

    run(main())


def test_who_used_up_its_budget_is_not_held():
    async def main():
        port, calls = a_held_port(NodeConfig(pacing=False, topic_budget=10))
        port.publish("a", [b"eleven byte"])
        await a_few_turns()
        assert len(calls) == 1

    run(main())


def test_publishing_on_and_on_does_not_put_the_departure_off():
    async def main():
        port, calls = a_held_port()
        port.publish("a", [b"x"])
        await a_few_turns()
        for _ in range(5):
            port.publish("a", [b"x"] * COMPANY)
            await asyncio.sleep(0)
        assert calls

    run(main())


def test_a_port_that_shuts_lets_the_kernels_file_go():
    async def main():
        port, calls = a_held_port()
        waits = port.publishing.departures._waits
        port.publish("a", [b"x"])
        await a_few_turns()
        port.shut(None)
        assert waits.closed and not port.publishing.departures.is_holding and calls == []

    run(main())


def test_without_the_setting_nothing_is_counted():
    async def main():
        port = LocalPort(NodeConfig(pacing=False), Alone())
        port.open()
        assert port.publishing.departures._waits is None and port.describe()["pace"] == 0.0

    run(main())


# Among living nodes


def test_held_publications_arrive_and_those_awaited_or_left_behind_by_a_close_are_not_held():
    async def main():
        heard = []
        async with cluster(2, pacing=False) as (publisher, reader):
            subscription = reader.subscribe("t", on_batch=lambda batch: heard.extend(batch.payloads))
            await subscription.ready()
            port = publisher._live.port
            hold(port)
            await publisher.publish("t", b"1")
            await a_few_turns()
            assert port.publishing.departures.is_holding
            await publisher.publish("t", b"2", wait="stable")
            await until(lambda: heard == [b"1", b"2"])
            hold(port)
            port.publishing.departures._pace.seconds = MOST
            await publisher.publish("t", b"3")
            await until(lambda: heard == [b"1", b"2", b"3"])
            hold(port)
            await publisher.publish("t", b"4")
            await publisher.close()
            await until(lambda: heard == [b"1", b"2", b"3", b"4"])

    run(main())
