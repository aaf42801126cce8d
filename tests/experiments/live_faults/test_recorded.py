"""The checker of what applications recorded: silent about what is right, and every kind of damage is found."""

import random
from itertools import pairwise

import pytest

from cubecast.experiments.live_faults.recorded import Record, judge

SEED = 5


def delivery(by, number):
    return ["deliver", "t", by, number, [ord(by), 0, number]]


def talk(seed: int, *, ends: bool = True) -> list[Record]:
    """Three applications that answer each other; each delivers everything, in an order that keeps causes in front."""
    chance = random.Random(seed)
    names, lines = "abc", {name: [["start", name], ["ready", "t", 0.0]] for name in "abc"}
    heard: dict[str, dict[str, int]] = {name: {} for name in names}
    for now in range(1, 31):
        by = chance.choice(names) if now > 9 else names[now % 3]  # each at least three times
        mine = heard[by].get(by, 0) + 1
        lines[by].append(["publish", "t", mine, {k: v for k, v in heard[by].items() if k != by}, float(now)])
        for name in names:
            lines[name].append(delivery(by, mine))
            heard[name][by] = mine
    if ends:
        for name in names:
            lines[name].append(["end"])
    return [Record(name, lines[name]) for name in names]


def deliveries(record):
    return [at for at, line in enumerate(record.lines) if line[0] == "deliver"]


def test_what_is_right_is_right():
    for seed in range(50):
        findings = judge(talk(seed))
        assert findings.mistakes == 0, findings.witnesses
        assert (findings.published, findings.delivered) == (30, 90)


def drop(record, chance):
    del record.lines[chance.choice([at for at in deliveries(record) if record.lines[at][2] != record.name])]
    return "lost"


def drop_all_of_a_publisher(record, chance):
    by = chance.choice([name for name in "abc" if name != record.name])
    record.lines[:] = [line for line in record.lines if line[0] != "deliver" or line[2] != by]
    return "lost"


def drop_with_a_gap_about_another(record, chance):
    """It names another message, which is there as well."""
    able = [at for at in deliveries(record) if record.lines[at][2] != record.name]
    at, other = chance.sample(able, 2)
    record.lines[at] = ["gap", "t", "gone", [[*record.lines[other][4], record.lines[other][4][2]]]]
    return "lost"


def drop_behind_a_gap_that_ended(record, chance):
    """Nobody knew what is missing, until the subscription was ready again; this was published later."""
    able = [at for at in deliveries(record) if record.lines[at][2] != record.name]
    del record.lines[chance.choice(able)]
    record.lines[2:2] = [["gap", "t", "gone", []], ["ready", "t", 0.5]]
    return "lost"


def double(record, chance):
    at = chance.choice(deliveries(record))
    record.lines.insert(chance.randrange(at + 1, len(record.lines)), list(record.lines[at]))
    return "doubled"


def swap(record, chance):
    """Two of one publisher."""
    by = chance.choice(sorted({record.lines[at][2] for at in deliveries(record)}))
    places = [at for at in deliveries(record) if record.lines[at][2] == by]
    one = chance.randrange(len(places) - 1)
    first, second = places[one], places[one + 1]
    record.lines[first], record.lines[second] = record.lines[second], record.lines[first]
    return "disordered"


def move_a_cause(record, chance):
    """Behind the next message of another publisher, which had heard it."""
    places = deliveries(record)
    able = [(one, two) for one, two in pairwise(places) if record.lines[one][2] != record.lines[two][2]]
    one, two = chance.choice(able)
    record.lines[one], record.lines[two] = record.lines[two], record.lines[one]
    return "before_cause"


def make_up(record, chance):
    record.lines.insert(chance.choice(deliveries(record)), delivery("z", 1))
    return "made_up"


DROPS = [drop, drop_all_of_a_publisher, drop_with_a_gap_about_another, drop_behind_a_gap_that_ended]


@pytest.mark.parametrize("mutate", [*DROPS, double, swap, move_a_cause, make_up])
def test_every_damage_is_found(mutate):
    for seed in range(SEED, SEED + 50):
        chance, records = random.Random(seed), talk(seed)
        kind = mutate(records[chance.randrange(3)], chance)
        findings = judge(records)
        assert getattr(findings, kind) >= 1, f"seed {seed}: {kind} was not found"


def test_a_gap_excuses_what_it_names_where_it_was_told_and_nothing_else():
    for seed in range(50):
        records = talk(seed)
        lines = records[0].lines
        at = [place for place in deliveries(records[0]) if lines[place][2] == "b"][1]
        name = lines[at][4]
        lines[at] = ["gap", "t", "gone", [[*name, name[2]]]]
        assert judge(records).mistakes == 0
        lines.insert(-1, lines.pop(at))
        assert judge(records).lost == 1, "others of that publisher came before it"
        lines.insert(at, delivery("b", name[2]))
        lines[at], lines[-2] = lines[-2], lines[at]
        assert judge(records).disordered >= 1, "what is told to be lost does not come later"


def test_a_gap_without_names_excuses_what_was_published_until_the_subscription_was_ready_again():
    for seed in range(50):
        records = talk(seed)
        lines = records[0].lines
        places = [place for place in deliveries(records[0]) if lines[place][2] == "b"]
        published = {line[2]: line[4] for line in records[1].lines if line[0] == "publish"}
        number = lines[places[1]][3]
        lines[places[1]] = ["gap", "t", "gone", []]
        findings = judge(records)
        assert (findings.mistakes, findings.gaps, findings.unnamed) == (0, 1, 1)
        lines.insert(places[1] + 1, ["ready", "t", published[number] + 0.5])
        assert judge(records).mistakes == 0
        lines[places[1] + 1] = ["ready", "t", published[number] - 0.5]
        assert judge(records).lost == 1
        assert judge([*records[1:], Record("a", lines[:-1])]).lost == 1, "it died; what it has is in order all the same"


def test_a_publisher_that_was_never_heard_is_missed_from_the_moment_of_being_ready():
    records = [*talk(3), Record("d", [["start", "d"], ["ready", "t", 15.5], ["end"]])]
    assert judge(records).lost == 15
    records[-1].lines[1] = ["ready", "t", 30.5]
    assert judge(records).mistakes == 0


def test_what_only_the_dead_have_is_asked_of_nobody():
    records = talk(2)
    dead, heir = records[0], records[1]
    dead.lines.pop()
    number = max(line[2] for line in dead.lines if line[0] == "publish")
    dead.lines += [["publish", "t", number + 1, {}, 31.0], delivery("a", number + 1)]
    assert judge(records).mistakes == 0
    heir.lines.insert(-1, delivery("a", number + 1))
    assert judge(records).lost == 1, "one that lives has it, the other one does not"
