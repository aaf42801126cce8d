"""A reproduction that was stopped goes on where it was, and only from figures of the same sources."""

from pathlib import Path

import pytest

import cubecast
from cubecast.experiments import parallel
from cubecast.experiments.parallel import here, kept, on_spark
from cubecast.experiments.vcube_pb.reproduce import GROWING, run_of_figure_3

CALLS: list[int] = []
POINTS = [{"x": x} for x in range(4)]


def square(point):
    CALLS.append(point["x"])
    if point["x"] == 2 and len(CALLS) == 3:
        raise KeyboardInterrupt
    return {"square": point["x"] ** 2, "pair": (1, 2)}


def by_number(point):
    CALLS.append(point["x"])
    return {point["x"]: 1}


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


def test_what_was_done_is_not_done_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        list(kept(here, tmp_path)(square, POINTS))
    assert CALLS == [0, 1, 2]
    figures = list(kept(here, tmp_path)(square, POINTS))
    assert CALLS == [0, 1, 2, 2, 3]
    assert [one["square"] for one in figures] == [0, 1, 4, 9]
    assert list(kept(here, tmp_path)(square, POINTS)) == [one | {"pair": [1, 2]} for one in figures]
    assert len(CALLS) == 5


def test_other_sources_compute_again(tmp_path, monkeypatch):
    list(kept(here, tmp_path)(square, POINTS[:1]))
    monkeypatch.setattr(parallel, "_sources", lambda package: f"others of {package}")
    list(kept(here, tmp_path)(square, POINTS[:1]))
    assert CALLS == [0, 0]


def test_only_what_figures_depend_on_counts_as_their_sources():
    package = parallel._package("cubecast.experiments.vcube_pb.reproduce.run")
    assert package == "experiments/vcube_pb"
    assert parallel._package(parallel.name_of(parallel.Timed(square))) == ""
    root = Path(cubecast.__file__).parent
    assert all((root / room).exists() for room in (*parallel.SIMULATED, package))
    assert parallel._sources(package) != parallel._sources("experiments/vcube_ps")


def test_a_torn_file_is_computed_again(tmp_path):
    list(kept(here, tmp_path)(square, POINTS[:1]))
    (file,) = tmp_path.iterdir()
    file.write_text('{"squ')
    assert next(kept(here, tmp_path)(square, POINTS[:1]))["square"] == 0


def test_what_json_would_change_is_not_kept(tmp_path):
    for _ in range(2):
        assert list(kept(here, tmp_path)(by_number, POINTS[1:2])) == [{1: 1}]
    assert CALLS == [1, 1]


@pytest.mark.spark
def test_spark_computes_the_same(spark):
    points = [{"placement": placement, "nodes": 16, "seed": 1} for placement in GROWING]
    assert list(on_spark(spark)(run_of_figure_3, points)) == list(here(run_of_figure_3, points))
