"""Sequences: some holes show only when several things happen in a row, which independent draws hardly ever bring about.

A sequence is such a row with random details, played in a drawn world in place of the faults drawn for it, and made of
ordinary actions, faults and suspicions. Everybody subscribes, and links are quick enough for the sequence's pace.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from cubecast.ids import Topic
from cubecast.protocol.family import Nemesis
from cubecast.protocol.masks import mask_of
from cubecast.sim.faults import Crash, Detour, Fault, Hold, Partition, Restart
from cubecast.sim.schedule import Action, Schedule, Suspicion

LINKS = ("constant:100", "normal:100:25", "uniform:10:200")


def draw_settings(rng: Random, among: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """A value of each; where there is one, nothing is drawn."""
    return {name: values[0] if len(values) == 1 else rng.choice(values) for name, values in among.items()}


def play(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """One of the family's sequences in this world, with the parameters it needs."""
    name = rng.choice(tuple(nemesis.sequences))
    played = SEQUENCES[name](rng, schedule, nemesis)
    needed = draw_settings(rng, nemesis.sequences[name])
    return played if played is schedule else replace(played, settings={**played.settings, **needed})


def last_words(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
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
    return _stage(rng, schedule, nemesis, topic, words, [deafness, *deaths])


def secret(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A node suspects another and dies before anything it says about that arrives; its acknowledgements do arrive."""
    paths = nemesis.forwarders(schedule.nodes)
    if not paths:
        return schedule  # nobody forwards anything
    source, child, victim = rng.choice(paths)
    topic, at = next(iter(schedule.members)), round(rng.uniform(100, 1500), 1)
    held = [Hold(kind, 5000.0, at, at + 400.0) for kind in nemesis.silenced]
    word = Action(round(at - rng.uniform(0, 90), 1), "publish", source, topic)
    staged = _stage(rng, schedule, nemesis, topic, [word], [*held, Crash(child, at + 350.0)])
    return replace(staged, suspicions=(Suspicion(at, child, victim),), detection_delay=10.0)


def rumour(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A node hears of a newcomer only through a publication that addresses it, and publishes next."""
    newcomer, source, listener = rng.sample(schedule.nodes, 3)
    topic, at = next(iter(schedule.members)), round(rng.uniform(100, 1000), 1)
    words = [
        Action(at, "subscribe", newcomer, topic),
        Action(round(at + rng.uniform(210, 300), 1), "publish", source, topic),
        Action(round(at + rng.uniform(650, 900), 1), "publish", listener, topic),
        Action(at + 2500.0, "publish", listener, topic),
    ]
    silence = Partition(1 << newcomer, 1 << listener, True, at, at + 1500.0)
    staged = _stage(rng, schedule, nemesis, topic, words, [silence])
    return replace(staged, members={**staged.members, topic: tuple(n for n in staged.nodes if n != newcomer)})


def two_sides(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """The nodes split into two halves that hold each other faulty, talk on, and meet again: one half gives way."""
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 1000), 1)
    shuffled = rng.sample(schedule.nodes, len(schedule.nodes))
    middle = rng.choice((len(shuffled) // 2, rng.randint(1, len(shuffled) - 1)))
    left, right = shuffled[:middle], shuffled[middle:]
    words = [
        Action(round(rng.uniform(0, at + 1500), 1), "publish", rng.choice(schedule.nodes), topic) for _ in range(12)
    ]
    split = Partition(mask_of(left), mask_of(right), False, at, at + 1200.0)
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), [split])
    doubts = [
        Suspicion(round(at + rng.uniform(100, 900), 1), *pair) for a in left for b in right for pair in ((a, b), (b, a))
    ]
    return replace(staged, suspicions=tuple(doubts))


def stranger(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A process comes back behind a cut and begins alone; when the cut heals, those who know it meet it."""
    topic, at = next(iter(schedule.members)), round(rng.uniform(100, 800), 1)
    node = rng.choice(schedule.nodes)
    others = mask_of(schedule.nodes) & ~(1 << node)
    back = round(at + rng.uniform(50, 300), 1)
    end = round(back + rng.uniform(2500, 4500), 1)
    deafness = Partition(others, 1 << node, rng.random() < 0.7, back - 10.0, end)
    words = [Action(0.0, "publish", rng.choice(schedule.nodes), topic)]
    words += [Action(round(back + rng.uniform(1, 5500), 1), "publish", one, topic) for one in schedule.nodes]
    words.append(Action(round(back + rng.uniform(1, 300), 1), "subscribe", node, topic))
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), [Crash(node, at), Restart(node, back), deafness])
    return replace(staged, heal_at=end + 500.0)


def greetings(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """Two sides hold each other faulty; to each a process returns, and their greetings to the other come late."""
    if len(schedule.nodes) < 4:
        return schedule
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 800), 1)
    x, y, *others = rng.sample(schedule.nodes, len(schedule.nodes))
    middle = rng.randint(1, len(others) - 1)
    left, right = [x, *others[:middle]], [y, *others[middle:]]
    back = at + 1200.0
    split = Partition(mask_of(left), mask_of(right), False, at, back - 1.0)
    far = Detour(mask_of(left), mask_of(right), rng.choice((400.0, 900.0)), back - 1.0, back + 800.0)
    times = [(node, round(back + rng.uniform(0, 50), 1)) for node in (x, y)]
    gone = round(at - 100.0, 1)
    ends: list[Fault] = [Crash(x, gone), Crash(y, gone), *(Restart(node, time) for node, time in times)]
    words = [Action(0.0, "publish", rng.choice(schedule.nodes), topic)]
    words += [Action(round(time + rng.uniform(1, 200), 1), "subscribe", node, topic) for node, time in times]
    words += [Action(round(back + rng.uniform(0, 4000), 1), "publish", node, topic) for node in schedule.nodes]
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), [*ends, split, far])
    doubts = [
        Suspicion(round(at + rng.uniform(100, 900), 1), *pair)
        for a in others[:middle]
        for b in others[middle:]
        for pair in ((a, b), (b, a))
    ]
    return replace(staged, suspicions=tuple(doubts), detection_delay=10.0)


def catalogue(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """Many topics, all told in the smallest pages and pieces, while a node that publishes to all of them dies."""
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 1200), 1)
    victim, follower, *_ = rng.sample(schedule.nodes, len(schedule.nodes))
    names = [f"n{number}" for number in range(rng.randint(3, 9))]
    words = [Action(0.0, "publish", rng.choice(schedule.nodes), topic)]
    words += [Action(round(rng.uniform(0, at), 1), "publish", rng.choice(schedule.nodes), name) for name in names]
    words += [
        Action(round(rng.uniform(0, at / 2), 1), "subscribe", node, name)
        for name in names
        for node in rng.sample(schedule.nodes, 2)
    ]
    words += [Action(round(at - rng.uniform(0, 250), 1), "publish", victim, name) for name in names]
    words.append(Action(round(rng.uniform(0, at + 500), 1), "follow", follower, "n*"))
    return _stage(rng, schedule, nemesis, topic, sorted(words), [Crash(victim, at)])


def _stage(
    rng: Random, schedule: Schedule, nemesis: Nemesis, topic: Topic, words: list[Action], faults: list[Fault]
) -> Schedule:
    earlier = [action for action in schedule.actions if action.kind == "publish" and action.at < words[0].at - 500]
    return replace(
        schedule,
        members={**schedule.members, topic: schedule.nodes},
        settings={**schedule.settings, **nemesis.pace},
        propagation=rng.choice(LINKS),
        actions=tuple(sorted((*earlier, *words))),
        faults=tuple(faults),
        suspicions=(),
        reactions=0,
        detection_delay=schedule.detection_delay or 300.0,
    )


SEQUENCES = {
    sequence.__name__: sequence for sequence in (last_words, secret, rumour, two_sides, stranger, greetings, catalogue)
}
