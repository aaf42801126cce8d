"""A run is a function of its parameters and seed: byte for byte, whatever the interpreter's hash seed.

`pytest tests/sim --rewrite` renews golden_digests.json; a changed digest means that runs changed, so say why.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate, simulate_to_directory, simulate_to_memory

GOLDEN = Path(__file__).parent / "golden_digests.json"

CONFIGS = {
    "static": SimConfig("vcube-ps", nodes=64, publishers="50%", messages=3, propagation="normal:100:25", seed=11),
    "pass": SimConfig("vcube-ps", nodes=32, messages=3, settings={"first_reception": "pass"}, seed=12),
    "respond": SimConfig(
        "vcube-ps", nodes=32, publishers="100%", workload="respond:2:90", propagation="planetlab", seed=13
    ),
    "topics": SimConfig("vcube-ps", nodes=32, subscribers="60%", messages=4, topics=5, zipf=0.825, seed=14),
    "churn": SimConfig(
        "vcube-ps",
        nodes=32,
        subscribers="40%",
        window=5000.0,
        workload="periodic:50",
        churn_session=900.0,
        propagation="uniform:5:50",
        fifo_links=True,
        seed=15,
    ),
    "faults": SimConfig(
        "vcube-ps",
        nodes=32,
        publishers="50%",
        messages=4,
        faults="loss:2%@0-400,duplicate:5%@0-900,crash:5@100,restart:5@400,pause:6@50-300,reorder:60@0-900",
        detection_delay=20.0,
        seed=16,
    ),
    "srpt": SimConfig("srpt", nodes=64, subscribers="30%", messages=3, propagation="uniform:10:90", seed=17),
    "srpt-b": SimConfig("srpt-b", nodes=64, messages=3, settings={"brokers": "9"}, workload="poisson:300", seed=18),
}
EACH = pytest.mark.parametrize("name", CONFIGS)


def test_golden_digests(request: pytest.FixtureRequest):
    digests = {name: simulate(config)["digest"] for name, config in CONFIGS.items()}
    if request.config.getoption("--rewrite"):
        GOLDEN.write_text(json.dumps(digests, indent=2) + "\n")
    assert digests == json.loads(GOLDEN.read_text())


@EACH
def test_another_seed_is_another_run(name: str):
    config = CONFIGS[name]
    other = SimConfig(**{**config.to_json(), "seed": config.seed + 1})
    assert simulate(other)["digest"] != json.loads(GOLDEN.read_text())[name]


@EACH
def test_tracing_changes_nothing(name: str):
    assert simulate_to_memory(CONFIGS[name])[2]["digest"] == simulate(CONFIGS[name])["digest"]


@EACH
def test_the_wire_codec_changes_nothing(name: str):
    config = CONFIGS[name]
    plain, coded = simulate(config), simulate(SimConfig(**{**config.to_json(), "coded": True}))
    for figures in (plain, coded):
        del figures["wall_seconds"], figures["events_per_second"]
    assert plain == coded


RUN_IN_A_PROCESS = """
import json, sys
from pathlib import Path
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory
for name, options in json.loads(sys.argv[2]).items():
    simulate_to_directory(SimConfig(**options), Path(sys.argv[1]) / name)
"""


def run_in_a_process(directory: Path, hash_seed: str) -> dict[str, str]:
    """All configurations traced by another interpreter; a digest of every file it wrote."""
    options = json.dumps({name: config.to_json() for name, config in CONFIGS.items()})
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", RUN_IN_A_PROCESS, str(directory), options]
    subprocess.run(command, check=True, env=environment)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_traces_are_equal_byte_for_byte_whatever_the_hash_seed(tmp_path: Path):
    first, second = (run_in_a_process(tmp_path / seed, seed) for seed in ("0", "4242"))
    assert len(first) > 2 * len(CONFIGS)
    assert first == second


def test_the_same_process_writes_the_same_bytes_twice(tmp_path: Path):
    for run in ("a", "b"):
        simulate_to_directory(CONFIGS["faults"], tmp_path / run)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
