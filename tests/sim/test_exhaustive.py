"""All interleavings of tiny worlds."""

import json

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.experiments.exhaustive import WORLDS, judge
from cubecast.sim.exhaustive import TinyWorld, explore, replay
from support import planted

FULL = ("K0", "K1", "K2", "K3", "P1", "P1b", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P11", "P12", "P13")


LARGE = ("one leaves and returns", "the publisher of two dies, aggregated")
"""Some thousand states."""
SMALL = {name: tiny for name, tiny in WORLDS.items() if name not in LARGE}


@pytest.mark.parametrize("tiny", SMALL.values(), ids=SMALL.keys())
def test_every_interleaving_keeps_every_promise(tiny):
    """All of them: the search ends, and messages reach others than their publisher."""
    result = explore(tiny, judge, most_states=2000)
    print(f"{result.states} states, {result.histories} histories, complete: {result.complete}")
    assert not result.failures, (result.failures[0], tiny)
    assert result.complete and result.delivered


def test_a_search_that_stops_early_says_so_and_fails():
    result = CliRunner().invoke(main, ["swarm", "--exhaustive", "20", "--json"])
    assert result.exit_code == 1
    worlds = json.loads(result.stdout)["worlds"]
    assert not all(one["complete"] for one in worlds) and not any(one["failures"] for one in worlds)


@pytest.mark.slow
@pytest.mark.parametrize("tiny", [WORLDS[name] for name in LARGE], ids=LARGE)
def test_every_interleaving_of_the_larger_ones_too(tiny):
    result = explore(tiny, judge, most_states=5000)
    print(f"{result.states} states, {result.histories} histories, complete: {result.complete}")
    assert not result.failures, (result.failures[0], tiny)
    assert result.complete and result.delivered


PUBLISHED = {
    "V2": TinyWorld("vcube-ps", 4, (0, 3), (("publish", 0), ("subscribe", 2), ("publish", 0)), promises=FULL),
    "V3": TinyWorld("vcube-ps", 4, (0, 1), (("publish", 0), ("subscribe", 3), ("publish", 1)), promises=FULL),
}


@pytest.mark.parametrize("tiny", PUBLISHED.values(), ids=PUBLISHED.keys())
def test_published_defects_are_found(tiny):
    result = explore(tiny, judge, most_states=5000)
    assert result.failures
    path, reason = result.failures[0]
    print(f"{result.states} states: {reason}")
    assert [row.kind for row in replay(tiny, path)] == [row.kind for row in replay(tiny, path)]


@pytest.mark.interpreted
def test_a_planted_bug_is_found():
    with planted.epoch_ignored():
        result = explore(WORLDS["one leaves and returns"], judge, most_states=3000)
    assert result.failures
    print(f"{result.states} states: {result.failures[0][1]}")


@pytest.mark.slow
def test_a_newcomer_without_an_excuse_is_found():
    tiny = TinyWorld("cubecast", 4, (0, 1), (("publish", 0), ("subscribe", 3), ("publish", 1)))
    with planted.excuse_omitted():
        result = explore(tiny, judge, most_states=20_000)
    assert result.failures
    print(f"{result.states} states: {result.failures[0][1]}")
