"""Where sweeps come from: TOML files with every mistake one clear line, and the named experiments."""

from pathlib import Path

import pytest

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import NAMED, find_sweep, read_sweep
from cubecast.experiments.sweep.kinds import checked_points, find_kind

GOOD = """
[sweep]
name = "brokers"
runs = 4
seed = 9
keep_traces = true

[parameters]
messages = 2
settings.first_reception = "pass"

[grid]
nodes = [32, 64]
settings.brokers = [4, 8]

[[points]]
protocol = "srpt-b"
publishers = 3
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "some.toml"
    path.write_text(text)
    return path


def test_a_file_becomes_a_sweep(tmp_path: Path):
    sweep = read_sweep(written(tmp_path, GOOD))
    assert (sweep.name, sweep.runs, sweep.seed, sweep.keep_traces, sweep.point) == ("brokers", 4, 9, True, "sim")
    points, complete = checked_points(sweep)
    assert len(points) == 16
    assert len(complete) == 4
    first = complete[points[0].combination]
    assert first["publishers"] == "3"
    assert first["settings.brokers"] == 4
    assert first["settings.first_reception"] == "pass"
    assert first["propagation"] == "constant:100", "defaults are recorded too"


def test_a_file_gives_its_name_to_a_sweep_without_one(tmp_path: Path):
    assert find_sweep(str(written(tmp_path, "[grid]\nnodes=[8]"))).name == "some"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[grid", "is not TOML"),
        ("", "nothing to vary"),
        ("[parameters]\nprotocol='srpt'", "nothing to vary"),
        ("[grid]\nnodes=[]", "no values for nodes"),
        ("[grid]\nnodes=8", "must be a list"),
        ("grid=[8]", r"written \[grid\]"),
        ("[gird]\nnodes=[8]", r"unknown table \[gird\]"),
        ("[sweep]\nrun=3\n[grid]\nnodes=[8]", "has no 'run'"),
        ("[sweep]\nruns='3'\n[grid]\nnodes=[8]", "runs must be a whole number, not '3'"),
        ("[sweep]\nruns=true\n[grid]\nnodes=[8]", "runs must be a whole number, not True"),
        ("[sweep]\nruns=0\n[grid]\nnodes=[8]", "at least 1 run"),
        ("[grid]\nnodes=[[8]]", "must be text, a number"),
        ("points=[1]", r"\[\[points\]\]"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, text: str, says: str):
    path = written(tmp_path, text)
    with pytest.raises(BadInput, match=says) as caught:
        read_sweep(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ("nodez=[8]", "no parameter 'nodez'"),
        ("nodes=[8, 9]", "power of two|9"),
        ("nodes=['8']", "nodes must be int, not '8'"),
        ("messages=[1.5]", "messages must be int"),
        ("fifo_links=[1]", "fifo_links must be bool"),
        ("publishers=['0%']", "publishers must be between"),
        ("propagation=['fast']", "propagation 'fast' is not understood"),
        ("workload=['none']", "workload 'none' is not understood"),
        ("settings.brokers=[2]", "vcube-ps has no parameter 'brokers'"),
        ("settings.first_reception=['maybe']", "takes block or pass"),
        ("window=[-1]", "window must be positive"),
    ],
)
def test_a_wrong_simulation_is_refused_before_anything_runs(tmp_path: Path, grid: str, says: str):
    sweep = read_sweep(written(tmp_path, f"[parameters]\nprotocol='vcube-ps'\n[grid]\n{grid}"))
    with pytest.raises(BadInput, match=says):
        checked_points(sweep)


def test_a_protocol_is_needed_and_must_exist(tmp_path: Path):
    with pytest.raises(BadInput, match="needs a protocol"):
        checked_points(read_sweep(written(tmp_path, "[grid]\nnodes=[8]")))
    with pytest.raises(BadInput, match="unknown protocol 'nope'"):
        checked_points(read_sweep(written(tmp_path, "[grid]\nprotocol=['nope']")))


def test_files_that_are_not_there_or_not_text(tmp_path: Path):
    with pytest.raises(BadInput, match="cannot be read"):
        find_sweep(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not a text file"):
        find_sweep(str(tmp_path / "bytes.toml"))
    with pytest.raises(BadInput, match=r"no sweep 'vcube'; there are .*vcube-ps-publishers"):
        find_sweep("vcube")


@pytest.mark.parametrize("name", NAMED)
def test_named_sweeps_can_run(name: str):
    sweep = find_sweep(name)
    points, complete = checked_points(sweep)
    assert sweep.name == name
    assert len(points) == sweep.runs * len(complete) > 0


@pytest.mark.parametrize("name", [name for name in NAMED if name.startswith("vcube-ps")])
def test_the_chapter_on_vcube_ps_runs_as_printed(name: str):
    """40 runs; processing and transmission take one unit, propagation a hundred (§5.6.1)."""
    sweep = find_sweep(name)
    _, complete = checked_points(sweep)
    assert sweep.runs == 40
    for one in complete.values():
        assert (one["processing"], one["transmission"], one["propagation"]) == (1.0, 1.0, "constant:100")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("nothing", "no kind of point 'nothing'"),
        ("support.sweep_points:absent", "cannot be loaded"),
        ("no_such_module:run", "cannot be loaded"),
        ("support.sweep_points:NOT_A_POINT", "neither a function"),
    ],
)
def test_kinds_of_points_that_do_not_exist(kind: str, says: str):
    with pytest.raises(BadInput, match=says):
        find_kind(kind)
