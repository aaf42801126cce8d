"""A sweep as data: its points, their seeds, its identity, and what it refuses."""

from dataclasses import replace

import pytest

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Sweep

SWEEP = Sweep("s", grid={"a": [1, 2], "b": ["x", "y", "z"]}, parameters={"c": 0.5}, runs=2)


def test_the_grid_is_multiplied_and_every_combination_runs_several_times():
    points = SWEEP.expand()
    assert [(point.parameters["a"], point.parameters["b"], point.run) for point in points] == [
        (a, b, run) for a in (1, 2) for b in "xyz" for run in (0, 1)
    ]
    assert all(point.parameters["c"] == 0.5 for point in points)
    assert len({point.id for point in points}) == len({point.seed for point in points}) == 12


def test_listed_points_stand_alone_or_multiply_with_the_grid():
    listed = Sweep("s", points=[{"a": 1}, {"a": 2, "b": 3}])
    assert [point.parameters for point in listed.expand()] == [{"a": 1}, {"a": 2, "b": 3}]
    both = Sweep("s", points=[{"a": 1}, {"a": 2}], grid={"n": [8, 16]})
    assert [point.parameters for point in both.expand()] == [{"a": a, "n": n} for a in (1, 2) for n in (8, 16)]
    assert both.varied() == ["a", "n"]


def test_a_seed_depends_on_the_sweep_and_the_point_and_on_nothing_else():
    seeds = {point.id: point.seed for point in SWEEP.expand()}
    wider = replace(SWEEP, grid={"b": ["new", *"zyx"], "a": [3, 2, 1]}, runs=5)
    again = {point.id: point.seed for point in wider.expand()}
    assert seeds.items() <= again.items()
    assert not set(seeds.values()) & {point.seed for point in replace(SWEEP, name="t").expand()}
    assert not set(seeds.values()) & {point.seed for point in replace(SWEEP, seed=2).expand()}


def test_seeds_stay_what_they_were():
    """Results of earlier versions can be compared only as long as this holds."""
    assert [point.seed for point in Sweep("s", grid={"a": [1]}).expand()] == [278144431896664]


def test_more_runs_are_the_same_sweep_and_anything_else_is_not():
    assert replace(SWEEP, runs=9).identity() == SWEEP.identity()
    others = [
        replace(SWEEP, name="t"),
        replace(SWEEP, seed=2),
        replace(SWEEP, keep_traces=True),
        replace(SWEEP, point="m:f"),
        replace(SWEEP, parameters={"c": 0.25}),
        replace(SWEEP, grid={"a": [1, 2], "b": ["x", "y"]}),
    ]
    assert len({str(one.identity()) for one in (SWEEP, *others)}) == 7


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"grid": {}}, "nothing to vary"),
        ({"grid": {"a": []}}, "no values for a"),
        ({"runs": 0}, "at least 1 run"),
        ({"name": "a/b"}, "name is letters"),
        ({"name": ""}, "name is letters"),
        ({"parameters": {"a": 1}}, "a is given twice"),
        ({"points": [{"b": 1}]}, "b is given twice"),
        ({"grid": {"seed": [1, 2]}}, "seed is derived"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(wrong: dict, says: str):
    with pytest.raises(BadInput, match=says):
        replace(SWEEP, **wrong)


def test_the_same_point_twice_is_refused():
    with pytest.raises(BadInput, match="twice"):
        Sweep("s", grid={"a": [1, 2, 1]}).expand()
