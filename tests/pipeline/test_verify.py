"""`verify` with Spark, end to end: many runs in one call, golden histories and mutants of every kind."""

import random
from pathlib import Path

from cubecast.check.checker import check_directory
from cubecast.check.mutate import MUTATORS
from cubecast.pipeline.verify import verify
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory
from cubecast.trace.reader import Trace
from support.agreeing import disagreements, write_all, write_trace
from support.histories import read_history
from support.model_traces import ALL_PROMISES, clean_trace

HISTORIES = sorted((Path(__file__).parents[1] / "histories").rglob("*.txt"))
SEEDS = range(12)


def one_mutant_of_each_kind() -> dict[str, Trace]:
    """For every mutator the first seed whose clean trace offers it something to break."""
    found: dict[str, Trace] = {}
    for seed in SEEDS:
        clean = clean_trace(seed, total_order=True)
        for name, mutator in MUTATORS.items():
            events = mutator.apply(clean.events, random.Random(seed)) if name not in found else None
            if events is not None:
                found[name] = Trace(clean.info, events)
    return found


def test_golden_histories_and_every_mutant_in_one_call(spark, tmp_path: Path):
    mutants = one_mutant_of_each_kind()
    assert set(mutants) == set(MUTATORS)
    traces = [read_history(path).trace for path in HISTORIES] + list(mutants.values()) + [clean_trace(1, True)]
    assert disagreements(spark, tmp_path, traces) == []


def test_golden_histories_and_every_mutant_without_spark(tmp_path: Path):
    """What small traces get: the same passes, called by this process."""
    traces = [read_history(path).trace for path in HISTORIES] + list(one_mutant_of_each_kind().values())
    assert disagreements(None, tmp_path, traces) == []


def test_every_mutant_is_killed_and_the_clean_trace_is_not(spark, tmp_path: Path):
    mutants = one_mutant_of_each_kind()
    directories = write_all(tmp_path, [*mutants.values(), clean_trace(2, True)])
    *judged, clean = verify(spark, directories, ALL_PROMISES).runs
    assert clean.verdict == "VALID"
    for (name, _), run in zip(mutants.items(), judged, strict=True):
        expected = MUTATORS[name].violates
        violated = {promise for promise, one in run.properties.items() if one.verdict == "VIOLATED"}
        assert (violated & expected) if expected else run.verdict == "UNKNOWN", f"{name} lives: {run.properties}"


def test_the_report(spark, tmp_path: Path):
    bad = read_history(next(path for path in HISTORIES if path.stem == "causal"))
    directory = write_trace(tmp_path / "causal", bad.trace)
    verification = verify(spark, [directory])
    report = verification.to_json()
    assert report["verdict"] == "VIOLATED"
    assert report["runs"] == 1
    assert report["deliveries"] == sum(event.kind == "deliver" for event in bad.trace.events)
    assert report["messages"] == sum(event.kind == "publish" for event in bad.trace.events)
    assert report["properties"]["P7"] == {"verdict": "VIOLATED", "violations": 1}
    assert report["properties"]["P1"] == {"verdict": "VALID", "violations": 0}
    first = report["witnesses"][0]
    assert f"{first['property']} {first['node']}@{first['seq']}" == " ".join(bad.witness.split()[:2])
    verification.write(tmp_path / "out")
    assert spark.read.parquet(str(tmp_path / "out" / "witnesses")).where("property = 'P7'").count() == 1
    assert spark.read.parquet(str(tmp_path / "out" / "verdicts")).count() == len(report["properties"])
    assert sum(report["seconds"].values()) <= report["wall_seconds"] + 0.01
    assert set(report["seconds"]) == {
        *("reading footers", "reading logs", "building message tables", "replaying subscriptions"),
    }


def test_only_what_is_asked_for_and_always_k0(spark, tmp_path: Path):
    trace = clean_trace(3)
    report = verify(spark, [write_trace(tmp_path / "run", trace)], ["P5"]).to_json()
    assert list(report["properties"]) == ["K0", "P5"]


def test_premises_are_counted_as_the_checker_counts_them(tmp_path: Path):
    configs = [
        SimConfig("cubecast", nodes=4, publishers="1", seed=1),
        SimConfig(
            "cubecast", nodes=8, publishers="100%", workload="respond:2:90", faults="crash:3@300", detection_delay=50.0
        ),
        SimConfig("vcube-ps", nodes=8, subscribers="50%", window=3000.0, workload="periodic:50", churn_session=900.0),
    ]
    for number, config in enumerate(configs):
        simulate_to_directory(config, tmp_path / str(number))
        expected = check_directory(tmp_path / str(number)).to_json()
        found = verify(None, [tmp_path / str(number)]).to_json()
        assert (found["premises"], found["vacuous"]) == (expected["premises"], expected["vacuous"])
        assert number or {"P5", "P7", "K1"} <= set(found["vacuous"])
