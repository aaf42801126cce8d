"""Plots: some holes show only when several things happen in a row, which independent draws hardly ever bring about.

A plot is such a row with random details, played in a drawn world in place of the faults drawn for it, and made of
ordinary actions, faults and suspicions. Everybody subscribes, and links are quick enough for the plot's pace.
"""

from dataclasses import replace
from random import Random

from cubecast.ids import Topic
from cubecast.protocol.vcube.topology import cluster, first_child, mask_of
from cubecast.sim.faults import Crash, Fault, Hold, Partition
from cubecast.sim.schedule import Action, Schedule, Suspicion

LINKS = ("constant:100", "normal:100:25", "uniform:10:200")
PATIENT = "1000.0"
"""Nothing is sent again during the decisive moments."""


def last_words(rng: Random, schedule: Schedule) -> Schedule:
    """Some nodes talk among themselves, the others hear only the very last word, and then the talkers die."""
    if len(schedule.nodes) < 4:
        return schedule
    topic, talkers = next(iter(schedule.members)), rng.sample(schedule.nodes, 3)
    others = mask_of(schedule.nodes) & ~mask_of(talkers)
    start = round(rng.uniform(700, 1200), 1)
    end = start + 900.0
    times = (start, start + rng.uniform(250, 400), end + 0.1)
    words = [Action(0.0, "publish", node, topic) for node in talkers]
    words += [Action(round(at, 1), "publish", node, topic) for at, node in zip(times, talkers, strict=True)]
    deafness = Partition(mask_of(talkers), others, True, start, end)
    deaths = [Crash(node, round(end + rng.uniform(3, 100), 1)) for node in talkers]
    return _stage(rng, schedule, topic, words, [deafness, *deaths])


def secret(rng: Random, schedule: Schedule) -> Schedule:
    """A node suspects another and dies before anything it says about that arrives; its acknowledgements do arrive."""
    source, victim = rng.sample(schedule.nodes, 2)
    child = first_child(source, cluster(source, victim), mask_of(schedule.nodes))
    if child is None or child == victim:
        return schedule  # nobody forwards between the two
    topic, at = next(iter(schedule.members)), round(rng.uniform(100, 1500), 1)
    held = [Hold(kind, 5000.0, at, at + 400.0) for kind in ("Settle", "Obituary")]
    word = Action(round(at - rng.uniform(0, 90), 1), "publish", source, topic)
    staged = _stage(rng, schedule, topic, [word], [*held, Crash(child, at + 350.0)])
    return replace(staged, suspicions=(Suspicion(at, child, victim),), detection_delay=10.0)


def _stage(rng: Random, schedule: Schedule, topic: Topic, words: list[Action], faults: list[Fault]) -> Schedule:
    earlier = [action for action in schedule.actions if action.kind == "publish" and action.at < words[0].at - 500]
    return replace(
        schedule,
        members={**schedule.members, topic: schedule.nodes},
        settings={**schedule.settings, "retry": PATIENT},
        propagation=rng.choice(LINKS),
        actions=tuple(sorted((*earlier, *words))),
        faults=tuple(faults),
        suspicions=(),
        reactions=0,
    )


PLOTS = (last_words, secret)
