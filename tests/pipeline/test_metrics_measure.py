"""From trace directories to metrics, against what the simulator counted while it ran."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.errors import BadInput, TraceError
from cubecast.pipeline.metrics.in_memory.measure import measure_in_memory
from cubecast.pipeline.metrics.measure import measure
from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.metrics.source import read_events, read_headers
from cubecast.pipeline.staging import find_runs
from cubecast.report.tables import metric_tables
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory
from cubecast.trace.event import RunInfo
from cubecast.trace.writer import TraceWriter
from support.agreeing import write_trace
from support.model_traces import clean_trace
from support.trace_rows import event, relayed_story

SRPT = {"protocol": "srpt", "nodes": 16, "subscribers": "40%", "publishers": "100%", "messages": 3, "window": 60.0}


@pytest.fixture(scope="module")
def simulated(spark, tmp_path_factory) -> tuple[Metrics, dict[str, dict], Path]:
    """Two seeds of one setting with relays, and one run of the other protocol, measured together."""
    place = tmp_path_factory.mktemp("traces")
    figures = {}
    for name, options in (
        ("a", {**SRPT, "seed": 1}),
        ("b", {**SRPT, "seed": 2}),
        ("c", {"protocol": "vcube-ps", "nodes": 8, "publishers": "100%", "propagation": "normal:100:25"}),
    ):
        figures[name] = simulate_to_directory(SimConfig(**options), place / name)
    live = RunInfo("r", "by hand", (), clock_unit="s")
    with TraceWriter(place / "live", live) as writer:
        writer.write_all(event(one) for one in relayed_story())
    write_trace(place / "model", clean_trace(7))
    return measure(spark, [place]), figures, place


def run_of(metrics: Metrics, protocol: str, seed: int | None) -> dict:
    (found,) = (run for run in metrics.runs if (run["protocol"], run["seed"]) == (protocol, seed))
    return found


@pytest.mark.parametrize(("name", "protocol", "seed"), [("a", "srpt", 1), ("b", "srpt", 2), ("c", "vcube-ps", 1)])
def test_the_trace_tells_what_the_simulator_counted(simulated, name: str, protocol: str, seed: int) -> None:
    metrics, figures, _ = simulated
    run, counted = run_of(metrics, protocol, seed), figures[name]
    for one in ("published", "packets", "messages_sent", "deliveries", "false_positives", "duplicates"):
        assert run[one] == counted[one], one
    for one in ("reception_latency", "delivery_latency", "holding_time", "barrier_size"):
        for part in ("mean", "max"):
            assert run[one][part] == pytest.approx(counted[one][part]), (one, part)


def test_relays_exist_exactly_where_nodes_forward_what_they_do_not_want(simulated) -> None:
    metrics, _, _ = simulated
    assert run_of(metrics, "srpt", 1)["false_positives"] > 0
    assert run_of(metrics, "srpt", 1)["relays"] > 0
    assert run_of(metrics, "vcube-ps", 1)["relays"] == 0


def test_the_rebuilt_queue_is_the_simulators(simulated) -> None:
    """Processing shifts every packet by the same time, so the queue looks the same; the simulator counts fractions."""
    metrics, figures, _ = simulated
    run = run_of(metrics, "srpt", 1)
    assert run["transmission_time"] == 1.0
    assert run["queue_length"]["max"] >= 1
    exact, ours = figures["a"]["queue_length"]["mean"], run["node_queue_joined_mean"]["mean"]
    assert exact <= ours <= exact + 1


def test_over_runs_gathers_runs_that_differ_in_their_seed(simulated) -> None:
    metrics, figures, _ = simulated
    several = {row["metric"]: row for row in metrics.over_runs if row["runs"] == 2}
    means = [figures[name]["delivery_latency"]["mean"] for name in ("a", "b")]
    assert several["delivery_latency"]["mean"] == pytest.approx(sum(means) / 2)
    assert several["packets"]["max"] == max(figures[name]["packets"] for name in ("a", "b"))
    assert several["delivery_latency"]["ci99"] > 0
    assert len({row["setting"] for row in metrics.over_runs}) == 4


def test_nothing_is_lost_in_a_simulation_without_faults(simulated) -> None:
    metrics, _, _ = simulated
    assert [run["lost_packets"] for run in metrics.runs if run["protocol"] in ("srpt", "vcube-ps")] == [0, 0, 0]


def test_in_memory_and_on_spark_every_figure_is_the_same(simulated) -> None:
    """Two implementations that share the names of what they measure, and nothing else."""
    metrics, _, place = simulated
    runs = find_runs([place])
    ours = measure_in_memory(runs, read_headers(runs))
    assert len(ours.runs) == len(metrics.runs) == 5
    for mine, theirs in zip(ours.runs, metrics.runs, strict=True):
        for name in theirs:
            assert mine.get(name) == pytest.approx(theirs[name], rel=1e-9, abs=1e-9), (theirs["run"], name)
    assert len(ours.over_runs) == len(metrics.over_runs)
    for name in ("totals", "distributions", "histograms", "quantiles", "nodes", "over_runs"):
        assert rows_of(ours, name) == rows_of(metrics, name), name


def rows_of(metrics: Metrics, table: str) -> list[tuple]:
    """Rows in a defined order, doubles to nine digits."""

    def short(value: object) -> object:
        return float(f"{value:.9g}") + 0.0 if isinstance(value, float) else value

    found = metrics.table(table)
    names = sorted(found.column_names)
    return sorted((tuple(short(row[name]) for name in names) for row in found.to_pylist()), key=repr)


def test_the_command_prints_json_or_tables_and_writes_parquet(simulated, tmp_path: Path) -> None:
    _, figures, place = simulated
    done = CliRunner().invoke(main, ["metrics", str(place), "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert {run["published"] for run in json.loads(done.stdout)["runs"]} >= {figures["c"]["published"]}
    tables = {"totals", "distributions", "histograms", "quantiles", "nodes", "over_runs"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == tables
    again = CliRunner().invoke(main, ["metrics", str(place), "--out", str(tmp_path / "out")])
    assert again.exit_code == 2
    assert "not an empty directory" in again.stderr
    shown = CliRunner().invoke(main, ["metrics", str(place)], env={"COLUMNS": "200"})
    assert "over runs of the same setting" in shown.stdout


def test_spark_writes_the_same_tables(spark, simulated, tmp_path: Path) -> None:
    metrics, _, _ = simulated
    metrics.write(tmp_path / "out")
    assert spark.read.parquet(str(tmp_path / "out" / "nodes")).count() == sum(run["nodes"] for run in metrics.runs)
    assert spark.read.parquet(str(tmp_path / "out" / "totals")).count() == len(metrics.runs)


def test_a_report_of_traces_judges_measures_and_draws(simulated, tmp_path: Path) -> None:
    found, _, place = simulated
    done = CliRunner().invoke(main, ["report", str(place), "--out", str(tmp_path / "page.html"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sections"] == ["Verdicts", "What happened", "Metrics"]
    text = (tmp_path / "page.html").read_text()
    assert '<td data-is="verdict" class="VALID">VALID</td>' in text
    assert "packets per publication" in text
    assert "Over runs of protocol srpt, nodes 16" in text
    assert text.count("<h3>Latencies") == len({run["clock_unit"] for run in found.runs})


def test_bad_input_is_refused_before_spark_starts(tmp_path: Path, monkeypatch) -> None:
    def must_not_start(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("cubecast.pipeline.session.spark_session", must_not_start)
    for command in ("metrics", "verify", "report"):
        done = CliRunner().invoke(main, [command, str(tmp_path / "nowhere"), "--master", "local[1]"])
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert "does not exist" in done.stderr


def test_one_bad_run_among_others_is_refused_alone(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        simulate_to_directory(SimConfig(protocol="vcube-ps", nodes=2, seed=len(name)), tmp_path / name)
    next((tmp_path / "bad").glob("*.parquet")).write_bytes(b"PAR1 cut short")
    done = CliRunner().invoke(main, ["metrics", str(tmp_path), "--json"])
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert len(found["runs"]) == 1
    assert "not a complete Parquet file" in found["refused"][0]


def test_tables_for_people_name_every_run(simulated) -> None:
    metrics, _, _ = simulated
    tables = list(metric_tables(metrics.to_json()))
    assert [str(table.title).split(" · ")[0] for table in tables[:-1]] == [run["run"] for run in metrics.runs]
    assert "delivery latency" in list(tables[0].columns[0].cells)


def test_runs_of_one_name_are_told_apart(spark, tmp_path: Path) -> None:
    for name, window in (("x", 10.0), ("y", 20.0)):
        config = SimConfig(protocol="vcube-ps", nodes=4, publishers="100%", window=window)
        simulate_to_directory(config, tmp_path / name)
    runs = find_runs([tmp_path])
    headers = read_headers(runs)
    rows = read_events(spark, runs, headers).where("kind = 'publish'").groupBy("run").count().collect()
    assert {row.run: row["count"] for row in rows} == {header.run: 4 for header in headers}
    assert len({header.run for header in headers}) == 2


def test_a_live_run_has_no_queue_but_packets_in_flight(simulated) -> None:
    metrics, _, _ = simulated
    run = run_of(metrics, "by hand", None)
    assert "queue_length" not in run
    assert "node_queue_mean" not in run
    assert run["node_in_flight_max"]["max"] == 2.0
    assert run["delivery_latency"]["mean"] == 17.5
    assert (run["lost_packets"], run["duplicates"], run["control_packets"]) == (1, 1, 1)
    assert run["packets_per_publication"] == 2.0


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda place: next(place.glob("*.parquet")).write_bytes(b"PAR1 cut short"), "not a complete Parquet file"),
        (lambda place: (place / "run.json").unlink(), "holds no run.json"),
        (lambda place: (place / "run.json").write_text('{"schema_version": 7}'), "schema version 7"),
    ],
)
def test_bad_traces_are_one_clear_line(spark, tmp_path: Path, spoil, complaint: str) -> None:
    simulate_to_directory(SimConfig(protocol="vcube-ps", nodes=2), tmp_path / "run")
    spoil(tmp_path / "run")
    with pytest.raises(TraceError, match=complaint) as refused:
        measure(spark, [tmp_path / "run"])
    assert "\n" not in str(refused.value)


def test_no_directory_is_bad_input(spark) -> None:
    with pytest.raises(BadInput):
        measure(spark, [])
