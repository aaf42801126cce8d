"""A verdict that nothing was put to the test for says so, in the checker and in the swarm."""

from rich.console import Console

from cubecast.check.checker import check_trace
from cubecast.check.verdict import Verdict
from cubecast.experiments.swarm import Tally, judge
from cubecast.report.tables import print_verdict
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_memory
from cubecast.sim.swarm import draw
from cubecast.trace.reader import Trace


def judged(**options):
    info, events, _ = simulate_to_memory(SimConfig("cubecast", nodes=4, **options))
    return check_trace(Trace(info, events))


def test_one_message_puts_no_order_to_the_test():
    report = judged(publishers="1")
    assert report.verdict is Verdict.VALID
    assert report.premises["P1"] == 4 and report.premises["P4"] == 3 and report.premises["P3"] == 1
    assert {"P5", "P6", "P7", "P8", "K1"} <= set(report.vacuous) and "P1" not in report.vacuous
    console = Console(record=True, width=200)
    print_verdict(console, report.to_json())
    lines = console.export_text().splitlines()
    assert any("P5" in line and "VALID, vacuous" in line for line in lines)
    assert any("P1 " in line and "vacuous" not in line for line in lines)


def test_a_conversation_does():
    report = judged(publishers="100%", messages=5, window=3000.0, workload="respond:2:90")
    assert report.premises["P7"] > 0 and "P7" not in report.vacuous


def test_a_swarm_says_what_no_schedule_tested():
    tally = Tally()
    for seed in range(1, 4):
        assert judge(draw("vcube-ps", seed), tally=tally) is None
    assert tally.premises["P1"] == tally.deliveries and "vacuous" in tally.to_json("vcube-ps", 1)
