"""Faults are data: they print as they are written, and each kind has its effect."""

import pytest

from cubecast.errors import BadInput
from cubecast.protocol.inputs import PeerDown
from cubecast.sim.config import SimConfig
from cubecast.sim.faults import parse_faults
from cubecast.sim.run import prepare, simulate, simulate_to_memory
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

QUIET = {"nodes": 4, "publishers": "1", "messages": 1, "window": 1.0, "processing": 0.0, "transmission": 0.0}


def run(faults: str, **options) -> list[Event]:
    """One publisher, links of 10 u.t.; the trace with packets."""
    config = SimConfig("vcube-ps", faults=faults, **(QUIET | {"propagation": "constant:10"} | options))
    return simulate_to_memory(config)[1]


def of(events: list[Event], kind: Kind, node: int | None = None) -> list[Event]:
    return [event for event in events if event.kind == kind and node in (None, event.node)]


SOURCE = of(run(""), Kind.PUBLISH)[0].node
OTHERS = [node for node in range(4) if node != SOURCE]


@pytest.mark.parametrize(
    "text",
    [
        "crash:3@500",
        "restart:3@900.5",
        "pause:2@100-400",
        "suspect:3@200-600",
        "partition:0+1+2|3@200-600",
        "oneway:0+1|2@200-600",
        "detour:0+1|2:900@200-600",
        "loss:5%@0-1000",
        "duplicate:2.5%@0-1000",
        "delay:50@100-300",
        "slow:3:40@100-300",
        "reorder:30@0-500",
        "resend:5%@0-500",
        "cutoff:3:2@500",
        "half:3@500",
        "flicker:3:5@500",
        "break:3:5@500",
        "hold:WaveAck:400@100-900",
        "twosteps:3@100-900",
        "twice:3@100-900",
        "late:3:400@100-900",
        "jump:3:-500@700",
    ],
)
def test_faults_print_as_they_are_written(text: str):
    (fault,) = parse_faults(text)
    assert str(fault) == text
    assert parse_faults(f" {text} , {text}") == (fault, fault)


@pytest.mark.parametrize(
    "text",
    [
        *("crash", "crash:3", "crash:x@5", "crash:3@1-2", "pause:3@5", "pause:3@5-5", "pause:3@9-5", "loss:5%"),
        *("loss:500%@0-9", "loss:-5%@0-9", "delay:-5@0-9", "partition:0@0-9", "partition:0|x@0-9", "slow:3@0-9"),
        *("meteor:3@0-9", "crash:3@-5", "crash:3@nan", "crash:-3@5", "pause:3@0-inf", "delay:nan@0-9", "slow:3:-4@0-9"),
        *(
            "partition:-1|2@0-9",
            "slow:3:inf@0-9",
            "half:3:1@5",
            "jump:3:inf@5",
            "hold:a b:3@0-9",
            "flicker:3@5",
            "break:3@5",
        ),
    ],
)
def test_impossible_faults_are_refused(text: str):
    with pytest.raises(BadInput, match="is not understood"):
        parse_faults(text)


@pytest.mark.parametrize(
    "text", ["crash:4@5", "pause:9@1-2", "partition:0|7@1-2", "slow:4:1@1-2", "suspect:64@1-2", "break:0:4@5"]
)
def test_faults_of_nodes_that_do_not_exist_are_refused(text: str):
    with pytest.raises(BadInput, match="does not exist"):
        run(text)


def test_a_crashed_node_is_silent_and_its_log_ends():
    events = run(f"crash:{OTHERS[0]}@0.0001")
    assert [event.kind for event in events if event.node == OTHERS[0]][-1] == Kind.CRASH
    assert not of(events, Kind.DELIVER, OTHERS[0])


def test_a_restarted_node_is_a_new_incarnation_that_remembers_nothing():
    events = run(f"crash:{OTHERS[0]}@1,restart:{OTHERS[0]}@2")
    mine = [(event.incarnation, event.kind) for event in events if event.node == OTHERS[0] and event.time >= 1]
    assert mine[:2] == [(0, Kind.CRASH), (1, Kind.START)]
    assert mine[-1] == (1, Kind.QUIESCENT)
    assert not of(events, Kind.DELIVER, OTHERS[0])


def test_a_paused_node_goes_on_with_what_arrived_meanwhile():
    events = run(f"pause:{OTHERS[0]}@0-500")
    assert [event.time for event in of(events, Kind.DELIVER, OTHERS[0])] == [500.0]
    assert len(of(events, Kind.DELIVER)) == 4


def test_a_paused_node_publishes_when_it_goes_on():
    events = run(f"pause:{SOURCE}@0-500")
    assert [event.time for event in of(events, Kind.PUBLISH)] == [500.0]


def test_a_wrong_suspicion_is_told_to_everybody_else():
    suspects = of(run("suspect:2@100-200"), Kind.SUSPECT)
    assert sorted(event.node for event in suspects) == [0, 1, 3]
    assert all(event.peer == 2 and 100 <= event.time <= 101 for event in suspects)


def test_crashes_are_detected_within_the_detection_delay():
    suspects = of(run("crash:2@100,restart:2@300", detection_delay=50.0), Kind.SUSPECT)
    assert sorted(event.node for event in suspects) == [0, 1, 3]
    assert all(100 <= event.time <= 150 for event in suspects)
    assert not of(run("crash:2@100"), Kind.SUSPECT)


def test_a_partition_separates_both_ways_and_a_one_way_one_does_not():
    rest = "+".join(map(str, OTHERS))
    both = run(f"partition:{SOURCE}|{rest}@0-1000")
    assert len(of(both, Kind.SEND)) == 2 and not of(both, Kind.RECEIVE)
    back = run(f"oneway:{rest}|{SOURCE}@0-1000")
    assert len(of(back, Kind.DELIVER)) == 4, "the publication gets through"
    assert not of(back, Kind.RECEIVE, SOURCE) and not of(back, Kind.ACKNOWLEDGED)
    healed = run(f"partition:{SOURCE}|{rest}@5000-6000")
    assert of(healed, Kind.ACKNOWLEDGED)


def test_loss_loses_its_share():
    options = {"nodes": 64, "publishers": "100%", "messages": 2, "propagation": "constant:10"}
    figures = simulate(SimConfig("srpt", faults="loss:30%@0-100000", seed=2, **options))
    complete = simulate(SimConfig("srpt", seed=2, **options))
    assert complete["deliveries"] == 64 * 64 * 2
    assert figures["deliveries"] < 0.7 * complete["deliveries"]
    assert not of(run("loss:100%@0-1000"), Kind.RECEIVE)


def test_a_broken_link_loses_what_is_under_way_on_it_and_nothing_else():
    plain, (sent, *_) = run(""), of(run(""), Kind.SEND, SOURCE)
    broken = run(f"break:{SOURCE}:{sent.peer}@{sent.time + 1}")
    assert len(of(broken, Kind.RECEIVE, sent.peer)) < len(of(plain, Kind.RECEIVE, sent.peer))
    late = of(run(f"break:{sent.peer}:{SOURCE}@900"), Kind.RECEIVE)
    assert len(late) == len(of(plain, Kind.RECEIVE)), "nothing was under way any more"


def test_both_ends_of_a_broken_link_are_told_and_nobody_else():
    """Brisa's views are links: what broke is mended, and every node that lost one hears of it."""
    simulation = prepare(SimConfig("brisa", nodes=8, publishers="1", until=30_000.0, seed=3))
    world, told = simulation.world, []

    class Told:
        def __init__(self, machine, node):
            self._machine, self._node = machine, node

        def __getattr__(self, name):
            return getattr(self._machine, name)

        def handle(self, now, given):
            if type(given) is PeerDown:
                told.append((self._node, given.peer))
            return self._machine.handle(now, given)

    for node in world.nodes:
        world.wrap(node, lambda machine, node=node: Told(machine, node))
    pair = []

    def break_one() -> None:
        node = next(one for one in world.nodes if any(one in world.links.get(peer, ()) for peer in world.links[one]))
        peer = next(one for one in sorted(world.links[node]) if node in world.links[one])
        pair.extend((node, peer))
        told.clear()
        world.break_link(node, peer)

    world.at(9_000.0, break_one)
    world.start()
    world.run(9_200.0)
    assert sorted(told) == sorted([tuple(pair), tuple(reversed(pair))])


def test_receiving_takes_time_one_packet_after_another():
    """Three copies that arrive at once at one node are handled a reception apart, in the order they came."""
    config = SimConfig("srpt", nodes=4, publishers="1", messages=3, window=0.001, transmission=0.0, reception=7.0)
    slow, fast = (simulate_to_memory(SimConfig(**{**config.to_json(), "reception": cost}))[1] for cost in (7.0, 0.0))
    child = of(fast, Kind.SEND, of(fast, Kind.PUBLISH)[0].node)[0].peer
    times = [[event.time for event in of(events, Kind.RECEIVE, child)][:3] for events in (fast, slow)]
    assert max(times[0]) - min(times[0]) < 0.01
    assert times[1] == pytest.approx([times[0][0] + 7, times[0][0] + 14, times[0][0] + 21], abs=0.01)
    counters = [[event.counter for event in of(events, Kind.RECEIVE, child)][:3] for events in (fast, slow)]
    assert counters[0] == counters[1]


def test_duplicates_arrive_twice():
    events = run("duplicate:100%@0-1000")
    assert len(of(events, Kind.RECEIVE)) >= 2 * 3
    packets = [event.packet for event in of(events, Kind.RECEIVE)]
    assert len(of(events, Kind.SEND)) < len(packets)


def test_delay_and_slow_nodes_add_their_time():
    plain = of(run(""), Kind.ACKNOWLEDGED)[0].time
    hops = (plain - of(run(""), Kind.PUBLISH)[0].time) / 10
    assert hops == 4, "two hops down, two up"
    assert of(run("delay:50@0-1000"), Kind.ACKNOWLEDGED)[0].time == pytest.approx(plain + 4 * 50)
    assert of(run(f"slow:{SOURCE}:40@0-1000"), Kind.ACKNOWLEDGED)[0].time == pytest.approx(plain + 40)


def test_reordering_lets_packets_overtake():
    config = SimConfig("srpt", nodes=16, publishers="1", messages=30, window=30.0, propagation="constant:10", faults="")
    for faults, ordered in (("", True), ("reorder:400@0-10000", False)):
        changed = SimConfig(**{**config.to_json(), "faults": faults})
        events = simulate_to_memory(changed)[1]
        streams = [[e.counter for e in of(events, Kind.RECEIVE, node) if e.source != node] for node in range(16)]
        assert all(stream == sorted(stream) for stream in streams) is ordered


def test_faults_do_not_disturb_other_random_streams():
    """A fault that hits nothing leaves the run as it was: every concern draws from its own stream."""
    config = {"nodes": 16, "publishers": "50%", "propagation": "normal:50:20", "seed": 5}
    calm = simulate(SimConfig("vcube-ps", **config))
    troubled = simulate(SimConfig("vcube-ps", faults="loss:0%@0-100000,suspect:3@1-2", **config))
    assert calm["digest"] == troubled["digest"]


def test_requests_of_a_crashed_node_are_refused():
    simulation = prepare(SimConfig("vcube-ps", nodes=4, publishers="1", seed=1))
    world = simulation.world
    world.start()
    world.crash(2)
    assert not world.publish(2, "t", (b"",)) and not world.subscribe(2, "u") and not world.unsubscribe(2, "t")
    world.crash(2)
    world.pause(2)
    world.resume(2)
    world.restart(3)
    assert list(world.crashed) == [2] and world.incarnations[3] == 0
