"""The checker of what applications recorded: silent about what is right, and every kind of damage is found."""

import random
from itertools import pairwise

import pytest

from cubecast.experiments.live_faults.recorded import Record, judge

SEED = 5


def talk(seed: int, *, ends: bool = True) -> list[Record]:
    """Three applications that answer each other; each delivers everything, in an order that keeps causes in front."""
    chance = random.Random(seed)
    names, lines = "abc", {name: [["start", name], ["ready", "t"]] for name in "abc"}
    heard: dict[str, dict[str, int]] = {name: {} for name in names}
    for _ in range(30):
        by = chance.choice(names)
        mine = heard[by].get(by, 0) + 1
        lines[by].append(["publish", "t", mine, {k: v for k, v in heard[by].items() if k != by}])
        for name in names:
            lines[name].append(["deliver", "t", by, mine])
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
    """In the middle or at the end, but not the first of a publisher, with which an application may begin."""
    seen, able = set(), []
    for at in deliveries(record):
        by = record.lines[at][2]
        able += [at] if by in seen else []
        seen.add(by)
    del record.lines[chance.choice(able)]
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
    record.lines.insert(chance.choice(deliveries(record)), ["deliver", "t", "z", 1])
    return "made_up"


@pytest.mark.parametrize("mutate", [drop, double, swap, move_a_cause, make_up])
def test_every_damage_is_found(mutate):
    for seed in range(SEED, SEED + 50):
        chance, records = random.Random(seed), talk(seed)
        kind = mutate(records[chance.randrange(3)], chance)
        findings = judge(records)
        assert getattr(findings, kind) >= 1, f"seed {seed}: {kind} was not found"


def test_a_gap_that_was_told_is_no_loss_and_one_told_elsewhere_is_no_excuse():
    records = talk(1)
    lines = records[0].lines
    at = [place for place in deliveries(records[0]) if lines[place][2] == "b"][2]
    lines[at] = ["gap", "t", "gone"]
    assert judge(records).lost == 0
    lines[at : at + 1] = []
    lines.insert(2, ["gap", "t", "gone"])
    assert judge(records).lost == 1
    assert judge([*records[1:], Record("a", lines[:-1])]).lost == 1, "it died; what it has is in order all the same"


def test_what_only_the_dead_have_is_asked_of_nobody():
    records = talk(2)
    dead, heir = records[0], records[1]
    dead.lines.pop()
    number = max(line[2] for line in dead.lines if line[0] == "publish")
    dead.lines += [["publish", "t", number + 1, {}], ["deliver", "t", "a", number + 1]]
    assert judge(records).mistakes == 0
    heir.lines.insert(-1, ["deliver", "t", "a", number + 1])
    assert judge(records).lost == 1, "one that lives has it, the other one does not"
