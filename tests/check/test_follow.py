"""Verdicts on journals that grow: at any moment those of the checker on the same rows, and the same witness."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from cubecast.check import check_trace
from cubecast.check.follow import journals
from cubecast.check.follow.follower import Follower
from cubecast.check.mutate import MUTATORS, Study
from cubecast.check.verdict import Verdict
from cubecast.trace.event import RunInfo
from cubecast.trace.reader import Trace
from support.growing_journals import Growing
from support.model_traces import clean_trace
from support.random_traces import random_trace

UNSAID = ("P13", "P9a", "P9b", "P9c", "P4u")
"""Not of journals: nothing certain is said of them before the end, or their nodes do not promise them."""
UNWRITTEN = ("published_in_anothers_name",)
"""No line of a journal can say it."""


def damages(name: str) -> bool:
    return MUTATORS[name].mutate.__module__.endswith("damage") or name in UNWRITTEN


def judged(trace: Trace, directory, draw: random.Random) -> tuple:
    """What following says after some looks, and what the checker says of the same rows."""
    info = replace(trace.info, nodes=None, promises=tuple(one for one in trace.info.promises if one not in UNSAID))
    growing, follower = Growing(Trace(info, trace.events), directory), Follower([directory], info, patience=0.0)
    for _ in range(draw.randrange(1, 4)):
        moment = growing.somewhere(draw)
        growing.grow({log: max(rows, growing.written[log]) for log, rows in moment.items()})
        follower.look()
    standing = follower.look()
    found = [one for one in check_trace(growing.trace(), info.promises).violations if one.certain]
    return standing, min(found, key=lambda one: one.size, default=None)


def place(violation) -> tuple | None:
    return violation and (violation.promise, violation.node, violation.incarnation, violation.seq, violation.topic)


def compare(seeds, tmp_path, trace_of) -> Counter:
    seen: Counter = Counter()
    for seed in seeds:
        draw = random.Random(seed)
        trace = trace_of(seed, draw)
        if trace is None:
            continue
        directory = tmp_path / str(seed)
        directory.mkdir()
        standing, expected = judged(trace, directory, draw)
        found = standing.violations[0] if standing.violations else None
        assert place(found) == place(expected), f"seed {seed} of {trace_of.__name__}: {standing.reasons}"
        assert (standing.verdict is Verdict.VIOLATED) == (expected is not None)
        seen[expected.promise if expected else "nothing"] += 1
    return seen


def mutated(seed: int, draw: random.Random) -> Trace | None:
    name = draw.choice([name for name in sorted(MUTATORS) if not damages(name)])
    trace = clean_trace(seed)
    events = MUTATORS[name].mutate(Study(trace.events), draw)
    return None if events is None else Trace(trace.info, list(events))


def clean(seed: int, draw: random.Random) -> Trace:
    return clean_trace(seed)


def drawn(seed: int, draw: random.Random) -> Trace:
    return random_trace(seed)


def test_the_checkers_verdict_and_witness_at_any_moment(tmp_path):
    assert len(compare(range(60), tmp_path, drawn)) > 5, "kinds of violations"
    assert set(compare(range(1000, 1015), tmp_path, clean)) == {"nothing"}
    assert len(compare(range(2000, 2050), tmp_path, mutated)) > 5


def test_journals_are_read_in_pieces(tmp_path, monkeypatch):
    """Of a few lines each, the first time and when a suspicion is looked into."""
    monkeypatch.setattr(journals, "AT_ONCE", 300)
    assert len(compare(range(60, 80), tmp_path, drawn)) > 3, "kinds of violations"


@pytest.mark.slow
def test_the_checkers_verdict_and_witness_at_any_moment_of_many_more_histories(tmp_path):
    seen = compare(range(10_000, 10_500), tmp_path, drawn) + compare(range(20_000, 20_600), tmp_path, mutated)
    assert {"K0", "K1", "K2", "K3", "P1", "P1b", "P2", "P6", "P7", "P11", "P12"} <= set(seen), seen


def test_what_a_run_ends_with_is_judged_when_it_ended(tmp_path):
    """What only an end decides: nothing is said before, and the checker's verdict afterwards."""
    for seed in range(40):
        trace = clean_trace(seed)
        events = MUTATORS["acknowledged_but_not_delivered"].mutate(Study(trace.events), random.Random(seed))
        if events is not None:
            break
    info = replace(trace.info, nodes=None, promises=("K0", "P3"))
    growing, follower = Growing(Trace(info, list(events)), tmp_path), Follower([tmp_path], info)
    growing.grow({log: len(rows) - 1 for log, rows in growing.rows.items()})
    follower.look()
    assert follower.look().verdict is Verdict.VALID
    growing.grow({log: len(rows) for log, rows in growing.rows.items()})
    follower.look()
    standing = follower.look()
    assert standing.decided_at_the_end
    assert [one.promise for one in standing.violations][:1] == ["P3"]


def test_another_life_that_delivers_again_is_reported(tmp_path):
    """Each life by itself delivers what nearly every delivery is, the publisher's next line."""

    def life(incarnation):
        begins = [["start", 0.0, incarnation], ["subscribe", 0.0, "t"], ["subscribed", 0.0, "t", []]]
        return [*begins, ["deliver", 2.0, "t", 0, 0, 1, 1, [5]], ["crash", 3.0]]

    published = [["start", 0.0, 0], ["publish", 1.0, "t", 1, 1, [], [5]]]
    for name, lines in (("00000-00000", published), ("00001-00000", life(0)), ("00001-00001", life(1))):
        (tmp_path / f"node-{name}-aaaaaaaa.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    standing = Follower([tmp_path], RunInfo("two lives", "cubecast", ("P2", "P10"))).look()
    assert place(standing.violations[0]) == ("P10", 1, 1, 3, "t")


def test_what_is_remembered_does_not_grow(tmp_path):
    """Many rounds of publishing and delivering: publications that all have are forgotten."""
    trace = clean_trace(3, steps=4000)
    growing, follower = Growing(trace, tmp_path), Follower([tmp_path], replace(trace.info, nodes=None))
    sizes = []
    for share in range(1, 11):
        growing.grow({log: len(rows) * share // 10 for log, rows in growing.rows.items()})
        sizes.append(follower.look().remembered)
    assert max(sizes[5:]) <= 2 * max(sizes[:5]) + 64 * len(growing.rows), sizes
