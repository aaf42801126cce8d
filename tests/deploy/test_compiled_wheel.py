"""The compiled build is the same program. Here it is built with the least optimisation, which saves half a minute."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from cubecast import __version__
from cubecast.experiments.swarm import run
from cubecast.sim.swarm import draw
from support.sources import ROOT

pytestmark = pytest.mark.xdist_group("compiled")  # built once

SEEDS = range(1, 201)
LIVE = (
    "tests/net/members/test_links.py",
    "tests/net/node/test_replay.py",
    "tests/net/links/test_framing.py",
    "tests/api/test_live.py",
)
COMPILED_FIRST = """
from cubecast.api import callbacks
from cubecast.net.node import driver
from cubecast.protocol.cubecast import machine
assert not any(module.__file__.endswith(".py") for module in (driver, callbacks, machine))
"""
OF_EVERY_SEED = """
from cubecast.experiments.swarm import run
from cubecast.sim.swarm import draw
from hashlib import sha256
for seed in {seeds}:
    print(sha256(repr(run(draw("cubecast", seed)).events).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("compiled") / "tree"
    build = [ROOT / "scripts" / "compiled", sys.executable, into]
    subprocess.run(build, cwd=ROOT, check=True, env=os.environ | {"MYPYC_OPT_LEVEL": "0"})
    return into


def said(compiled: Path, *words: str) -> str:
    """What Python prints when it finds the compiled build first."""
    environment = os.environ | {"PYTHONPATH": str(compiled)}
    done = subprocess.run([sys.executable, *words], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_it_says_so_and_leaves_nothing_in_the_sources(compiled: Path):
    version = said(compiled, "-c", "from cubecast.cli import main; main()", "--version")
    assert version == f"{__version__}, compiled\n"
    assert not list((ROOT / "src").rglob("*.so"))


def test_simulated_runs_are_the_same(compiled: Path):
    there = said(compiled, "-c", COMPILED_FIRST + OF_EVERY_SEED.format(seeds=SEEDS)).split()
    here = [sha256(repr(run(draw("cubecast", seed)).events).encode()).hexdigest() for seed in SEEDS]
    assert there == here


def test_live_nodes_pass_their_tests(compiled: Path):
    options = ("-q", "-n0", "-p", "no:cacheprovider", "-m", "not slow and not spark and not interpreted")
    run_pytest = COMPILED_FIRST + "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    assert " passed" in said(compiled, "-c", run_pytest, *options, *LIVE)
