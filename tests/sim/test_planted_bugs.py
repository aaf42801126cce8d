"""Every known defect of the published algorithms, and every rule of ours left out, is found by the swarm.

The test prints how many seeds each took. "Found" means: some schedule the swarm draws by itself breaks a promise.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from cubecast.experiments.swarm import judge
from cubecast.protocol.families import find
from cubecast.protocol.family import Nemesis
from cubecast.sim.faults import Crash, Hold, Partition, Restart
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import run
from support import planted

FULL = ("K0", "K1", "K2", "K3", "P1", "P1b", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P11", "P12", "P13")
MOST_SEEDS = 1000


class Bug(NamedTuple):
    name: str
    plant: Callable[[], AbstractContextManager[object]]
    protocol: str = "cubecast"
    profile: Nemesis | None = None
    promises: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    """What counts as finding it, where the protocol has other defects besides."""
    rare: bool = False
    """It takes hundreds of schedules."""
    sequence: str = ""
    """The one that was made for it: the test leaves out all other schedules, which find it later or never."""
    careful: bool = False
    """The machines' own invariants find it, which every fourth schedule of the swarm checks."""


SPLIT = replace(find("cubecast").nemesis, sequences={"two_sides": {}})
"""No other sequences."""
TABLE = (
    Bug("V1 one queue for all topics", planted.one_queue_for_all_topics, "vcube-ps", Nemesis(), kinds=("P5", "P7")),
    Bug("V2 a joiner forwards", planted.nothing, "vcube-ps", promises=FULL, kinds=("P3", "P4", "P6", "P8")),
    Bug("V3 a newcomer waits for ever", planted.nothing, "vcube-ps", promises=FULL, kinds=("stuck",)),
    Bug("V3 excuse omitted", planted.excuse_omitted),
    Bug("V4 epoch ignored", planted.epoch_ignored),
    Bug("V5 incarnation ignored", planted.incarnation_ignored),
    Bug("R1 one message per source", planted.one_message_per_source),
    Bug("R2 perfect detector assumed", planted.perfect_detector_assumed),
    Bug("R3 nothing is ever lost", planted.nothing_lost),
    Bug("acknowledged before forwarded", planted.ack_before_forward),
    Bug("forgotten before stable", planted.forget_before_stable),
    Bug("excuse too wide", planted.excuse_too_wide),
    Bug("settlement skipped", planted.settle_skipped, rare=True),
    Bug("destinations not learned", planted.destinations_not_learned),
    Bug("no fence", planted.no_fence, rare=True),
    Bug("no relay", planted.no_relay),
    Bug("published before the own wave", planted.publish_before_own_wave),
    Bug("starts not repeated", planted.starts_not_repeated),
    Bug("verdicts kept private", planted.verdicts_kept_private, rare=True),
    Bug("covered dependency dropped early", planted.covered_dropped_early),
    Bug("interest after the answer", planted.interest_after_the_answer, rare=True),
    Bug("postponed for ever", planted.postponed_for_ever),
    Bug("greeting taken for an introduction", planted.greeting_taken_for_an_introduction),
    Bug("joined at the first welcome", planted.joined_at_the_first_welcome),
    Bug("strangers ignored", planted.strangers_ignored),
    Bug("nobody gives way", planted.nobody_gives_way),
    Bug("waves not repeated", planted.waves_not_repeated),
    Bug("sends not repeated", planted.sends_not_repeated),
    Bug("stability never asked for", planted.never_asked),
    Bug("closed early", planted.closed_early),
    Bug("direct left alone", planted.direct_left_alone),
    Bug("nobody is tested", planted.nobody_is_tested),
    Bug("queue forgotten", planted.queue_forgotten),
    Bug("past forgotten", planted.past_forgotten),
    Bug("past untold", planted.past_untold),
    Bug("former topics left", planted.former_topics_left, rare=True),
    Bug("lives that are over untold", planted.lives_that_are_over_untold),
    Bug("handed over at once", planted.handed_over_at_once),
    Bug("accounted unseen", planted.accounted_unseen),
    Bug("lost before agreed", planted.lost_before_agreed, rare=True),
    Bug("claims from the first message", planted.claims_from_the_first_message, rare=True),
    Bug("publisher not told", planted.publisher_not_told),
    Bug("publisher told twice", planted.publisher_told_twice),
    Bug("asked once", planted.asked_once, sequence="asked_too_late"),
    Bug("claims from the meeting", planted.claims_from_the_meeting, sequence="unknown_to_each_other"),
    Bug("interest asks nobody", planted.interest_asks_nobody, sequence="latecomer"),
    Bug("first page only", planted.first_page_only, sequence="latecomer"),
    Bug("a piece for the whole", planted.a_piece_for_the_whole, sequence="second_death"),
    Bug("further death does not restart", planted.further_death_does_not_restart, sequence="second_death"),
    Bug("window ignored", planted.window_ignored, careful=True),
    Bug("healed sides never meet", planted.healed_sides_never_meet, sequence="left_alone"),
    Bug("late round convicts", planted.late_round_convicts, sequence="standstill"),
    Bug("newcomers relied upon", planted.newcomers_relied_upon, sequence="stillborn"),
    Bug("lost unnamed", planted.lost_unnamed, sequence="lost_twice"),
    Bug("losers joined again", planted.losers_joined_again, profile=SPLIT, sequence="two_sides"),
)
RULES = Path(__file__).parents[2] / "docs" / "protocol.md"


@pytest.fixture(scope="module")
def found():
    rows: list[tuple[str, int, str]] = []
    yield rows
    print("".join(f"\n{name:34} {seeds:5} seeds  {kind}" for name, seeds, kind in rows))


def _parameters() -> list[object]:
    return [pytest.param(bug, id=bug.name, marks=[pytest.mark.slow] if bug.rare else []) for bug in TABLE]


@pytest.mark.parametrize("bug", _parameters())
@pytest.mark.interpreted
def test_is_found(bug: Bug, found: list[tuple[str, int, str]]):
    with bug.plant():
        for seed in range(1, MOST_SEEDS * (3 if bug.sequence else 1) + 1):
            schedule = draw(bug.protocol, seed, bug.profile)
            if bug.sequence and schedule.sequence != bug.sequence:
                continue
            failure = judge(schedule, careful=bug.careful, promises=bug.promises)
            if failure is not None and (bug.kinds is None or failure.kind in bug.kinds):
                found.append((bug.name, seed, failure.kind))
                return
    raise AssertionError(f"{MOST_SEEDS} schedules did not find: {bug.name}")


LATE_NEWCOMER = Schedule(
    "cubecast",
    1,
    4,
    (0, 1, 2, 3),
    {"t": (0, 1, 2, 3)},
    {"retry": "1000.0", "patience": "4000.0"},
    "constant:100",
    False,
    (Action(1000.0, "publish", 2, "t"), Action(1250.0, "publish", 0, "t")),
    (
        *(Crash(3, 100.0), Restart(3, 600.0), Hold("Welcome", 3000.0, 590.0, 3000.0)),
        *(Partition(0b0101, 0b0010, True, 990.0, 1240.0), Crash(2, 1500.0), Crash(0, 1500.0)),
    ),
    (),
    detection_delay=10.0,
)
"""1 waits for what only 2 and 0 had, while 3 waits for welcomes."""


@pytest.mark.interpreted
def test_a_newcomer_that_echoes_verdicts_delays_nobody():
    """Without the echo no promise is broken, everybody only waits longer: this shows what it is for."""

    def announced():
        return [event.time for event in run(LATE_NEWCOMER).events if event.kind == "gap" and event.node == 1]

    (soon,) = announced()
    with planted.no_echo():
        (late,) = announced()
    assert soon < 3000 < late


BETWEEN_STRANGERS = (
    '{"protocol":"cubecast","seed":102789,"size":8,"nodes":[0,1,3,5,6,7],"members":{"t":[0,1,3,5,6,7]},'
    '"settings":{"window":"2","max_batch":"1","max_batch_bytes":"200","retry":"1000.0","aggregation":"on",'
    '"eager":"0","ack_delay":"0.0","direct":"0","calm":"0","topics_per_answer":"500",'
    '"announcement_bytes":"262144","detection":"driver","patience":"1500.0","round_length":"500.0"},'
    '"propagation":"normal:100:25","fifo_links":false,"actions":[[639.8,"publish",5,"t",1,0],[1126.2,"publish",1,'
    '"t",1,0]],"faults":"oneway:0+1+5+6|3+7@15.1-1197.4,crash:7@141,flicker:1:6@715.7","suspicions":[[36.8,1,0],'
    '[57.5,6,1],[418.4,1,3],[1041.7,3,1],[528.5,3,6],[802.6,5,3],[714.3,3,5]],"reactions":0,'
    '"detection_delay":1500.0,"heal_at":3500.0,"coded":false,"epilogue":2}'
)
"""Seed 102789, shrunk: a node that comes back is welcomed by two that take part and never heard of each other."""


@pytest.mark.interpreted
def test_who_joins_waits_until_those_who_take_part_know_each_other():
    schedule = Schedule.from_text(BETWEEN_STRANGERS)
    with planted.strangers_joined():
        failure = judge(schedule, careful=False)
    assert failure is not None and failure.kind == "P12"
    assert judge(schedule) is None


def test_without_them_the_same_schedules_are_clean():
    """The seeds that find the bugs find nothing else."""
    for seed in range(1, 61):
        failure = judge(draw("cubecast", seed), careful=False)
        assert failure is None, (failure.kind, failure.reasons, failure.replay)


def test_the_table_of_rules_names_every_removal():
    """Those the swarm finds, and those it does not, which stand apart."""
    rows = [line.split("|") for line in RULES.read_text().splitlines() if line.startswith("| ") and "`planted." in line]
    told = {row[2].strip().strip("`").removeprefix("planted."): "not found" not in row[3] for row in rows}
    found = {bug.plant.__name__ for bug in TABLE if bug.protocol == "cubecast"}
    assert {name for name, is_found in told.items() if is_found} == found
    assert all(hasattr(planted, name) for name in told)
