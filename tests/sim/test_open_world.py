"""Populations of any size that come and go, subscriptions from a table, horizons, links that break."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cubecast.check.checker import check_trace
from cubecast.check.verdict import Verdict
from cubecast.cli import main
from cubecast.errors import BadInput
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import Link, SetTimer, Unlink
from cubecast.sim.config import SimConfig, stream
from cubecast.sim.network import Network, constant
from cubecast.sim.run import prepare, simulate, simulate_to_memory
from cubecast.sim.world import World
from cubecast.trace.reader import Trace
from cubecast.wire.codec import Codec

DIAGNOSIS = {"detection": "diagnosis", "round_length": "500.0", "patience": "1500.0"}


def judged(**options):
    info, events, figures = simulate_to_memory(SimConfig("cubecast", **options))
    return check_trace(Trace(info, events)), events, figures


def test_a_protocol_that_does_not_rest_is_refused_in_one_line_and_ends_at_a_horizon():
    result = CliRunner().invoke(main, ["sim", "cubecast", "--nodes", "8", "--set", "detection=diagnosis"])
    assert result.exit_code == 2 and "--until" in result.stderr and result.stderr.count("\n") == 1
    report, _, figures = judged(nodes=8, settings=DIAGNOSIS, until=20_000.0)
    assert figures["rested"] and figures["simulated_time"] <= 20_000 and report.verdict is Verdict.VALID


def test_a_horizon_in_the_middle_leaves_what_is_not_known_open():
    report, events, figures = judged(nodes=8, publishers="100%", settings=DIAGNOSIS, until=150.0)
    assert not figures["rested"] and not [event for event in events if event.kind == "quiescent"]
    assert report.verdict is Verdict.UNKNOWN
    result = CliRunner().invoke(main, ["sim", "cubecast", "--nodes", "8", "--messages", "9", "--until", "150"])
    assert result.exit_code == 0 and "still under way at 150 u.t.: with a later --until" in result.stderr


def test_a_protocol_that_says_it_rests_and_does_not_is_stopped():
    simulation = prepare(SimConfig("conformance.test_toy_family:FLOOD", nodes=2))
    flood = simulation.world.machines[0]
    flood.on_start = flood.on_timer = lambda now, *_: [SetTimer("again", now + 1000.0)]
    with pytest.raises(BadInput, match="--until"):
        simulation.run()


def test_waiting_for_ever_for_a_node_that_crashed_unnoticed_ends_too():
    with pytest.raises(BadInput, match="--until"):
        simulate(SimConfig("cubecast", nodes=4, faults="crash:3@10"))


@pytest.mark.parametrize("seed", [1, 2])
def test_nodes_come_one_after_another(seed: int):
    report, events, _ = judged(nodes=8, window=6000.0, workload="periodic:50", join_window=3000.0, seed=seed)
    starts = sorted(event.time for event in events if event.kind == "start")
    assert starts[0] == 0.0 and starts[-1] == 3000.0 and len(starts) == 8
    assert report.verdict is Verdict.VALID and report.deliveries > 200


@pytest.mark.parametrize("seed", [1, 2])
def test_nodes_leave_and_return(seed: int):
    options = {"window": 5000.0, "workload": "periodic:50", "churn_nodes": "20%/1000", "detection_delay": 50.0}
    report, events, _ = judged(nodes=16, seed=seed, **options)
    lives = {(event.node, event.incarnation) for event in events if event.kind == "start"}
    assert len(lives) > 20 and [event for event in events if event.kind == "stop"]
    assert report.verdict is Verdict.VALID and report.deliveries > 500


def test_who_subscribes_to_what_comes_from_a_table(tmp_path):
    pairs = [("ann", "x"), ("bob", "x"), ("bob", "y"), ("cid", "y"), ("cid", "x"), ("eve", "z")]
    table = {"user": [user for user, _ in pairs], "topic": [topic for _, topic in pairs]}
    pq.write_table(pa.table(table), tmp_path / "part.parquet")
    config = SimConfig("cubecast", nodes=4, publishers="100%", messages=3, subscriptions=str(tmp_path))
    simulation = prepare(config)
    assert simulation.world.subscriptions == {0: {"x"}, 1: {"x", "y"}, 2: {"x", "y"}, 3: {"z"}}
    assert simulation.run()["refused"] == 0
    with pytest.raises(BadInput, match="--nodes 4"):
        prepare(SimConfig("cubecast", nodes=2, subscriptions=str(tmp_path)))
    with pytest.raises(BadInput, match="no table"):
        prepare(SimConfig("cubecast", nodes=4, subscriptions=str(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"churn_nodes": "5"},
            {"churn_nodes": "5%/0"},
            {"churn_nodes": "x%/9"},
            {"roles": "broker=1"},
            {"until": 0.0},
        ),
        *({"roles": "broker=1"}, {"publishers_from": "brokers"}, {"join_window": -1.0}, {"contacts": 0}),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(options):
    with pytest.raises(BadInput):
        simulate(SimConfig("cubecast", nodes=4, **options))


@dataclass
class Linked(Handlers):
    """Keeps a link to each of its peers and notes what it hears."""

    wants: tuple[int, ...]
    gives_up: tuple[int, ...] = ()
    heard: list[tuple[float, int]] = field(default_factory=list)

    def on_start(self, now):
        return [*map(Link, self.wants), SetTimer("give up", 500.0)]

    def on_timer(self, now, timer):
        return [*map(Unlink, self.gives_up)]

    def on_peer_down(self, now, peer):
        self.heard.append((now, peer))
        return []

    def waiting(self):
        return []


def test_the_end_of_a_link_is_told_to_those_who_keep_it_and_to_nobody_else():
    machines = {0: Linked((1, 2)), 1: Linked((0,), gives_up=(0,)), 2: Linked(()), 3: Linked((2,))}
    world = World(range(4), lambda node, _: machines[node], Network(4, constant(10.0, stream(1))), Codec(()))
    world.at(100.0, world.crash, 2)
    world.start()
    world.run()
    heard = {node: machine.heard for node, machine in machines.items()}
    assert heard == {0: [(110.0, 2), (510.0, 1)], 1: [], 2: [], 3: [(110.0, 2)]}
