"""`cubecast reproduce` as people and scripts call it."""

import json

from click.testing import CliRunner

from cubecast.cli import main


def run(*arguments):
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_json_is_one_object_with_every_claim_and_both_columns():
    result = run("causal-aggregation", "--quick", "--runs", "2", "--json")
    (report,) = json.loads(result.stdout)["experiments"]
    assert report["experiment"] == "causal-aggregation"
    assert (report["runs"], report["seed"]) == (2, 1)
    run_rows = [row for row in report["rows"] if row["verdict"] != "not run"]
    assert report["claims"] == len(run_rows) == len(report["beside"]["published"]["rows"])
    assert len(report["rows"]) == 55, "what the small sizes cannot judge is there too"
    row = report["rows"][0]
    assert (row["claim"], row["paper"], row["ours"], row["verdict"]) == ("CAB-T1-16-none", 240, 240, "reproduced")
    assert (result.exit_code == 1) == bool(report["unexplained"])
    assert "Figure 4.4" in report["series"]


def test_a_table_for_people():
    result = run("causal-aggregation", "--quick", "--runs", "1")
    assert "rows within tolerance" in result.stdout
    assert "published" in result.stdout


def test_bad_input_is_one_line():
    for arguments, words in ((("nothing",), "unknown experiment"), (("--runs", "0"), "at least 1")):
        result = run(*arguments)
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
