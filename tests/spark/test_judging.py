"""The judge and the metrics on DataFrames of a session: what they say of the directories they came from."""

import json

import pytest

from cubecast.errors import BadInput
from cubecast.pipeline.verify import verify as verify_directories
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory
from cubecast.spark import judging, metrics, verdicts, verify, witnesses


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A clean run, and one whose rows tell of a second delivery."""
    place = tmp_path_factory.mktemp("runs")
    simulate_to_directory(SimConfig("cubecast", nodes=8, messages=20, seed=3), place / "clean")
    return place


@pytest.fixture(scope="module")
def frame(spark, runs):
    clean = spark.read.parquet(str(runs / "clean" / "*.parquet"))
    doubled = clean.where("kind = 'deliver'").limit(1)
    last = clean.groupBy("node", "incarnation").agg({"seq": "max"}).withColumnRenamed("max(seq)", "top")
    again = (
        doubled.join(last, ["node", "incarnation"]).drop("seq").withColumnRenamed("top", "seq").select(clean.columns)
    )
    bad = clean.join(again.select("node", "incarnation", "seq"), ["node", "incarnation", "seq"], "left_anti")
    bad = bad.select(clean.columns).unionByName(again)
    return clean.selectExpr("'one' AS run", *clean.columns[1:]).unionByName(
        bad.selectExpr("'two' AS run", *clean.columns[1:])
    )


def headers(runs):
    told = json.loads((runs / "clean" / "run.json").read_text())
    return [told | {"run": name} for name in ("one", "two")]


@pytest.mark.parametrize("most", [judging.ROWS_IN_MEMORY, 10])
def test_verdicts_are_those_of_directories(spark, runs, frame, monkeypatch, most):
    """In this process, and as a job of the session."""
    monkeypatch.setattr(judging, "ROWS_IN_MEMORY", most)
    found = verify(spark, frame, headers(runs))
    assert (found.runs[0].run.name, found.runs[0].verdict) == ("one", "VALID")
    assert found.runs[1].properties["P2"].verdict == "VIOLATED"
    assert found.runs[0].properties == verify_directories(None, [runs / "clean"]).runs[0].properties
    table = verdicts(spark, found)
    assert table.where("run = 'two' AND property = 'P2'").first().verdict == "VIOLATED"
    assert witnesses(spark, found).where("property = 'P2'").count() >= 1


def test_metrics_are_those_of_directories(spark, runs, frame):
    found = metrics(spark, frame.where("run = 'one'"), headers(runs)[:1])
    assert found.to_json()["runs"]


def test_what_is_missing_is_said_in_one_line(spark, runs, frame):
    with pytest.raises(BadInput, match="say what each run promised"):
        verify(spark, frame)
    with pytest.raises(BadInput, match="no column 'seq'"):
        verify(spark, frame.drop("seq"), headers(runs))
    assert {run.run.name for run in verify(spark, frame, properties=["P2"]).runs} == {"one", "two"}
