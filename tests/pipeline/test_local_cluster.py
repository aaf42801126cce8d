"""The same job on a real cluster of processes gives the same verdict and the same numbers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cubecast.pipeline.verify import verify
from support.agreeing import write_all
from support.histories import read_history
from support.model_traces import clean_trace

CAUSAL = Path(__file__).parents[1] / "histories" / "violated" / "causal.txt"
JOB = """
import json, sys
from pathlib import Path
from cubecast.pipeline.session import spark_session
from cubecast.pipeline.verify import verify
spark = spark_session("local-cluster[2,1,1024]", [("spark.executor.memory", "600m"), ("spark.driver.memory", "600m")])
report = verify(spark, [Path(name) for name in sys.argv[1:]]).to_json()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
spark.stop()
print(json.dumps(report | {"executors": executors}))
"""


@pytest.mark.spark
def test_same_verdict_on_a_cluster_of_processes(spark, tmp_path: Path, spark_home: str):
    directories = write_all(tmp_path, [clean_trace(1), read_history(CAUSAL).trace])
    here = verify(spark, directories).to_json()
    source = str(Path(sys.modules["cubecast"].__file__).parents[1])
    environment = os.environ | {"SPARK_HOME": spark_home, "PYTHONPATH": source}
    command = [sys.executable, "-c", JOB, *map(str, directories)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    shutil.rmtree(Path(spark_home) / "work", ignore_errors=True)
    assert done.returncode == 0, done.stderr[-3000:]
    there = json.loads(done.stdout.splitlines()[-1])
    assert there.pop("executors") == 2
    for report in (here, there):
        report.pop("wall_seconds")
        report.pop("seconds")
    assert there == here
