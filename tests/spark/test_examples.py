"""The notebook and the job in `examples/`, run as a reader would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from cubecast import sync
from support.commands import running_node
from support.sources import ROOT


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with running_node("--data", tmp_path_factory.mktemp("log"), "--log", ">") as node:
        yield node


def test_the_notebook(spark, node, capsys):
    """Cell by cell, in the suite's session."""
    told = json.loads((ROOT / "examples" / "live_topics.ipynb").read_text())
    names = {"__name__": "notebook"}
    for cell in told["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace("127.0.0.1:7000", node.address), names)
    said = capsys.readouterr().out
    assert "|orders.eu|   40|     2|" in said
    assert "3 totals published" in said
    assert said.endswith("VALID\n")


@pytest.mark.slow
def test_the_job_for_spark_submit(node, tmp_path):
    """Twice: the second time there is little left to do."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    job, out = ROOT / "examples" / "spark_archive.py", tmp_path / "table"
    words = [submit, "--master", "local[2]", job, node.address, "archived.>", out]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    for many in (10, 25):
        with sync.connect(node.address) as client:
            client.publish_batch("archived.a", [b"x"] * (many if many == 10 else 15), wait="durable")
        ended = subprocess.run([*map(str, words)], env=env, capture_output=True, text=True, timeout=600, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        assert f"{many} messages in {out}" in ended.stdout
