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
from cubecast.sim.faults import ClockJump, Crash, Detour, Fault, Hold, LateTimers, Partition, Pause, Restart
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
    if played is schedule:
        return schedule  # there are not enough nodes for it
    return replace(played, settings={**played.settings, **needed}, sequence=name)


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


def lost_twice(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A node gives up what two dead ones left, and dies in turn: the others hear its last word only, which follows from
    all of that."""
    if len(schedule.nodes) < 4:
        return schedule
    publisher, witness, heir, *others = rng.sample(schedule.nodes, len(schedule.nodes))
    topic, at = next(iter(schedule.members)), round(rng.uniform(700, 1200), 1)
    end = round(at + rng.uniform(750, 900), 1)
    words = [Action(0.0, "publish", node, topic) for node in (publisher, witness, heir)]
    words += [
        Action(at, "publish", publisher, topic),
        Action(round(at + rng.uniform(250, 300), 1), "publish", witness, topic),
        Action(round(end + 0.1, 1), "publish", heir, topic),
    ]
    death = round(at + rng.uniform(450, 500), 1)
    faults: list[Fault] = [
        Partition(mask_of((publisher, witness, heir)), mask_of(others), True, at - 5.0, end),
        Partition(1 << publisher | 1 << witness, 1 << heir, True, at - 5.0, at + 240.0),
        *(Crash(publisher, death), Crash(witness, death), Crash(heir, round(end + rng.uniform(3, 100), 1))),
    ]
    return replace(_stage(rng, schedule, nemesis, topic, words, faults), detection_delay=10.0, propagation=LINKS[0])


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
    """The nodes split into two halves that hold each other faulty, talk on, and meet again, perhaps slowly: one half
    gives way."""
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 1000), 1)
    shuffled = rng.sample(schedule.nodes, len(schedule.nodes))
    middle = rng.choice((len(shuffled) // 2, rng.randint(1, len(shuffled) - 1)))
    left, right = shuffled[:middle], shuffled[middle:]
    words = [
        Action(round(rng.uniform(0, at + 1500), 1), "publish", rng.choice(schedule.nodes), topic) for _ in range(12)
    ]
    split = Partition(mask_of(left), mask_of(right), False, at, round(at + 1200.0, 1))
    far = Detour(split.left, split.right, rng.choice((200.0, 400.0, 900.0)), split.until, split.until + 4000.0)
    faults: list[Fault] = [split, far] if rng.random() < 0.5 else [split]
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), faults)
    doubts = [
        Suspicion(round(at + rng.uniform(100, 900), 1), *pair) for a in left for b in right for pair in ((a, b), (b, a))
    ]
    return replace(staged, suspicions=tuple(doubts))


def left_alone(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """Two sides as above, and no driver tells any node that it may talk to the others again."""
    return replace(two_sides(rng, schedule, nemesis), detection_delay=None)


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


def strangers(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """Several processes come back behind a cut and begin with each other; when it heals, the way to those who know them
    is long, and they meet them one by one."""
    if len(schedule.nodes) < 4:
        return schedule
    topic, at = next(iter(schedule.members)), round(rng.uniform(100, 500), 1)
    shuffled = rng.sample(schedule.nodes, len(schedule.nodes))
    number = rng.randint(2, len(shuffled) - 2)
    back, others = shuffled[:number], mask_of(shuffled[number:])
    returned = round(at + rng.uniform(50, 300), 1)
    end = round(returned + rng.uniform(2500, 3500), 1)
    split = Partition(others, mask_of(back), rng.random() < 0.3, returned - 10.0, end)
    far = Detour(others, mask_of(back), rng.choice((100.0, 400.0, 900.0)), end, end + 4000.0)
    faults: list[Fault] = [Crash(node, at) for node in back]
    faults += [Restart(node, round(returned + rng.uniform(0, 30), 1)) for node in back]
    words = [Action(0.0, "publish", rng.choice(schedule.nodes), topic)]
    words += [Action(round(returned + rng.uniform(1, 300), 1), "subscribe", node, topic) for node in back]
    words += [Action(round(returned + rng.uniform(1, 7500), 1), "publish", one, topic) for one in schedule.nodes]
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), [*faults, split, far])
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


def latecomer(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A process comes back when all topics have been asked about, and becomes interested in them."""
    topic, at = next(iter(schedule.members)), round(rng.uniform(500, 900), 1)
    node, *others = rng.sample(schedule.nodes, len(schedule.nodes))
    back = round(at + rng.uniform(50, 300), 1)
    known = round(back + rng.uniform(300, 900), 1)
    publishers = {f"n{number}": rng.choice(others) for number in range(rng.randint(2, 6))}
    words = [Action(0.0, "publish", rng.choice(others), topic), Action(known, "follow", node, "n*")]
    for name, publisher in publishers.items():
        words.append(Action(round(rng.uniform(0, at - 300), 1), "publish", publisher, name))
        words += [Action(round(known + rng.uniform(0, 3000), 1), "publish", publisher, name) for _ in range(3)]
    return _stage(rng, schedule, nemesis, topic, sorted(words), [Crash(node, at), Restart(node, back)])


def shares(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """On several topics a node waits for what others have of a publisher that died, and they say so piece by piece."""
    publisher, witness, deaf = rng.sample(schedule.nodes, 3)
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 900), 1)
    names = [f"n{number}" for number in range(rng.randint(2, 5))]
    words = [Action(round(at + rng.uniform(0, 30), 1), "publish", publisher, name) for name in names]
    words += [Action(round(at + rng.uniform(250, 350), 1), "publish", witness, name) for name in names]
    deafness = Partition(1 << publisher, 1 << deaf, True, at - 10.0, at + 3000.0)
    end = Crash(publisher, round(at + rng.uniform(550, 900), 1))
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), [deafness, end])
    members = {**staged.members, **dict.fromkeys(names, staged.nodes)}
    return replace(staged, members=members, detection_delay=10.0)


def second_death(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """The only one who has what a dead publisher left hands it to some, and dies too; another waits for it and has
    heard, before, from those that they lack it."""
    if len(schedule.nodes) < 4:
        return schedule
    publisher, holder, deaf, *others = rng.sample(schedule.nodes, len(schedule.nodes))
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 900), 1)
    both, death = mask_of((publisher, holder)), round(at + rng.uniform(560, 700), 1)
    words = [
        Action(at, "publish", publisher, topic),
        Action(round(at + rng.uniform(310, 350), 1), "publish", holder, topic),
    ]
    again = round(death + rng.uniform(220, 500), 1)
    faults: list[Fault] = [
        Partition(both, mask_of((deaf, *others)), True, at - 5.0, at + 300.0),
        Partition(1 << holder, 1 << deaf, True, death - 50.0, death + 3000.0),
        Crash(publisher, death),
        Crash(holder, again),
    ]
    staged = _stage(rng, schedule, nemesis, topic, words, faults)
    doubt = Suspicion(round(again + rng.uniform(-30, 10), 1), deaf, holder)
    return replace(staged, suspicions=(doubt,), detection_delay=10.0)


def asked_too_late(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A node comes back; a publisher does not hear of that, publishes, and is held faulty when that was read."""
    if len(schedule.nodes) < 4:
        return schedule
    back, publisher, reader, *others = rng.sample(schedule.nodes, len(schedule.nodes))
    topic, at = next(iter(schedule.members)), round(rng.uniform(300, 900), 1)
    words = [
        Action(0.0, "publish", publisher, topic),
        Action(round(at + rng.uniform(250, 450), 1), "publish", publisher, topic),
        Action(round(at + rng.uniform(500, 700), 1), "publish", reader, topic),
    ]
    deafness = Partition(1 << back, 1 << publisher, True, round(at + rng.uniform(205, 300), 1), at + 1500.0)
    staged = _stage(rng, schedule, nemesis, topic, words, [deafness])
    wrong = [Suspicion(at, one, back) for one in (publisher, reader, *others)]
    doubt = Suspicion(round(at + rng.uniform(600, 900), 1), rng.choice(others), publisher)
    return replace(staged, propagation=LINKS[0], suspicions=(*wrong, doubt))


def unknown_to_each_other(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """A subscriber and a process that returns hear of each other through others only: both were held faulty between."""
    if len(schedule.nodes) < 4:
        return schedule
    publisher, subscriber, reader, *others = rng.sample(schedule.nodes, len(schedule.nodes))
    topic, end = next(iter(schedule.members)), round(rng.uniform(2800, 3300), 1)
    words = [
        Action(250.0, "subscribe", subscriber, topic),
        Action(round(rng.uniform(700, 800), 1), "publish", subscriber, topic),
        Action(1200.0, "subscribe", publisher, topic),
        Action(round(rng.uniform(1650, 1900), 1), "publish", reader, topic),
        Action(round(rng.uniform(2050, 2300), 1), "publish", publisher, topic),
        Action(round(rng.uniform(4500, 6000), 1), "publish", reader, topic),
    ]
    there = (publisher, reader, *others)
    split = Partition(1 << subscriber, mask_of(there), False, 1000.0, end)
    staged = _stage(rng, schedule, nemesis, topic, words, [Crash(publisher, 50.0), Restart(publisher, 1150.0), split])
    doubts = [Suspicion(round(rng.uniform(1010, 1040), 1), one, subscriber) for one in (reader, *others)]
    doubts += [Suspicion(round(rng.uniform(2450, 2600), 1), one, publisher) for one in (reader, *others)]
    members = {**staged.members, topic: tuple(node for node in staged.nodes if node != subscriber)}
    return replace(staged, members=members, suspicions=tuple(doubts), detection_delay=10.0)


def stillborn(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """Several processes come back at a time, and one that only they have heard of crashes again. No driver reports
    anything, and none of them would test that one first."""
    paths = nemesis.forwarders(schedule.nodes)
    if not paths:
        return schedule
    gone = rng.choice(paths)[2]
    behind = sorted({source for source, _, other in paths if other == gone})
    waiting = rng.sample(behind, rng.randint(1, len(behind)))
    there = [node for node in schedule.nodes if node != gone and node not in waiting]
    if not there:
        return schedule
    topic, at = next(iter(schedule.members)), round(rng.uniform(200, 600), 1)
    back = round(at + rng.uniform(4000, 6000), 1)
    faults: list[Fault] = [Crash(node, at) for node in (gone, *waiting)]
    faults += [Restart(node, round(back + rng.uniform(0, 60), 1)) for node in (gone, *waiting)]
    faults.append(Crash(gone, round(back + rng.uniform(60, 250), 1)))
    faults.append(Partition(1 << gone, mask_of(there), True, at, back + 500.0))
    words = [Action(0.0, "publish", rng.choice(there), topic)]
    words += [Action(round(back + rng.uniform(100, 4000), 1), "publish", node, topic) for node in there]
    words += [Action(round(back + 100.0, 1), "subscribe", node, topic) for node in waiting]
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), faults)
    return replace(staged, detection_delay=None, heal_at=back + 500.0)


def standstill(rng: Random, schedule: Schedule, nemesis: Nemesis) -> Schedule:
    """One node stands still, or its clock jumps ahead, or its timers fire late: it is not to blame others for that."""
    topic, node = next(iter(schedule.members)), rng.choice(schedule.nodes)
    faults: list[Fault] = []
    for _ in range(rng.randint(1, 3)):
        at = round(rng.uniform(600, 3000), 1)
        longer = round(at + rng.uniform(100, 4000), 1)
        trouble = (ClockJump(node, rng.choice((1600.0, 5000.0)), at), LateTimers(node, 1700.0, at, longer))
        faults.append(rng.choice((*trouble, Pause(node, at, longer))))
    words = [
        Action(round(rng.uniform(0, 4000), 1), "publish", rng.choice(schedule.nodes), topic)
        for _ in range(rng.randint(4, 12))
    ]
    staged = _stage(rng, schedule, nemesis, topic, sorted(words), faults)
    return replace(staged, detection_delay=None, heal_at=7500.0)


def _stage(
    rng: Random, schedule: Schedule, nemesis: Nemesis, topic: Topic, words: list[Action], faults: list[Fault]
) -> Schedule:
    earlier = [action for action in schedule.actions if action.kind == "publish" and action.at < words[0].at - 500]
    rounded = [replace(fault, **{name: round(getattr(fault, name), 1) for name in _times(fault)}) for fault in faults]
    return replace(
        schedule,
        members={**schedule.members, topic: schedule.nodes},
        settings={**schedule.settings, **nemesis.pace},
        propagation=rng.choice(LINKS),
        actions=tuple(sorted((*earlier, *words))),
        faults=tuple(rounded),
        suspicions=(),
        reactions=0,
        detection_delay=schedule.detection_delay or 300.0,
    )


def _times(fault: Fault) -> tuple[str, ...]:
    return ("at", "until") if hasattr(fault, "until") else ("at",)


SEQUENCES = {
    sequence.__name__: sequence
    for sequence in (
        *(
            last_words,
            lost_twice,
            secret,
            rumour,
            two_sides,
            stranger,
            greetings,
            catalogue,
            latecomer,
            shares,
            second_death,
        ),
        *(asked_too_late, unknown_to_each_other, stillborn, standstill, left_alone, strangers),
    )
}
