"""`pip install cubecast` and nothing else: messaging works, and what needs more says what to install."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from examples.test_documents import BLOCK, EXPECTED
from support.commands import Running, running
from support.plain_install import PlainInstall
from support.sources import ROOT

MOST_BYTES = 100_000_000
EXTRAS = {"numpy", "pyarrow", "pandas", "pyspark", "numba", "matplotlib", "jinja2"}
EVERY_HELP = """
import json
import click
from cubecast.cli import main

def helps(command, name, parent=None):
    with click.Context(command, info_name=name, parent=parent) as context:
        yield context.command_path, command.get_help(context)
        for inside in command.list_commands(context) if isinstance(command, click.Group) else ():
            yield from helps(command.get_command(context, inside), inside, context)

print(json.dumps(dict(helps(main, "cubecast"))))
"""
WHAT_HELP_LOADS = """
import contextlib, io, json, sys
from cubecast.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["--help"], standalone_mode=False)
print(json.dumps(sorted(name for name in sys.modules if name.startswith(("cubecast.", "aiohttp")))))
"""
WHAT_A_NODE_LOADS = """
import json, sys
import cubecast.cli.node, cubecast.protocol.cubecast.family
print(json.dumps(sorted(sys.modules)))
"""
COMPLAINTS = """
import json, sys
from click.testing import CliRunner
from cubecast.cli import main

found = {}
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, words)
    found[words[0]] = [done.exit_code, done.stderr, done.stdout, repr(done.exception)]
print(json.dumps(found))
"""
READS_A_LOG = """
import asyncio, json, tempfile
from pathlib import Path
import cubecast

async def main():
    async with cubecast.Node(data=Path(tempfile.mkdtemp()), log=(">",)) as node:
        await node.publish("kept", "this", wait="durable")
        async for _ in node.read_log("kept"):
            pass

try:
    asyncio.run(main())
except cubecast.CubecastError as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
NEED_MORE = {
    "lab": [
        ["bench", "--nodes", "2"],
        ["sim", "vcube-ps"],
        ["swarm", "--schedules", "1"],
        ["check", "out/run"],
        ["compare", "--quick"],
        ["trace", "collect", ".", "--out", "out/trace"],
    ],
    "spark": [
        ["verify", "out/run"],
        ["metrics", "out/run"],
        ["workload", "synthetic", "--out", "out/grid"],
        ["sweep", "vcube-ps-subscribers"],
    ],
    "kernels": [["reproduce", "causal-aggregation", "--quick"]],
    "report": [["demo"], ["report", "."]],
    "arrow": [["log", "export", "data", "--parquet", "log.parquet"]],
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> PlainInstall:
    return PlainInstall(tmp_path_factory.mktemp("plain"))


def test_it_is_small(plain: PlainInstall):
    names = {one.metadata["Name"].lower() for one in plain.dependencies}
    assert len(names) > 8 and not names & EXTRAS
    assert plain.size() < MOST_BYTES


def test_every_help_is_there(plain: PlainInstall):
    found = plain.evaluate(EVERY_HELP)
    assert isinstance(found, dict) and len(found) > 35
    assert all(text.startswith(f"Usage: {path}") for path, text in found.items())
    for words in ((plain.program,), (plain.python, "-m", "cubecast")):
        listed = plain.run(*words, "--help").stdout
        assert listed.startswith("Usage: cubecast [OPTIONS]")
        assert all(f"\n  {path.split()[1]} " in listed for path in found if path.count(" ") == 1)


def test_the_list_of_commands_loads_nothing_but_itself(plain: PlainInstall):
    loaded = plain.evaluate(WHAT_HELP_LOADS)
    assert isinstance(loaded, list) and len(loaded) < 10, loaded
    assert not [name for name in loaded if name.startswith(("cubecast.api", "cubecast.protocol", "aiohttp"))]


def test_a_node_loads_neither_tables_nor_other_protocols_nor_the_web(plain: PlainInstall):
    """Sixteen that start at once on two cores wait for this."""
    loaded = plain.evaluate(WHAT_A_NODE_LOADS)
    assert isinstance(loaded, list) and "cubecast.net.live_node" in loaded
    others = (
        "rich",
        "aiohttp",
        "cryptography",
        "cubecast.protocol.epidemic",
        "cubecast.protocol.brokers",
        "cubecast.report",
    )
    assert not [name for name in loaded if name.startswith(others)]


def test_what_needs_more_says_what_to_install(plain: PlainInstall):
    asked = [words for many in NEED_MORE.values() for words in many]
    found = plain.evaluate(COMPLAINTS, json.dumps(asked))
    assert isinstance(found, dict)
    for extra, many in NEED_MORE.items():
        for words in many:
            code, complaint, said, error = found[words[0]]
            assert (code, said) == (2, ""), (words, found[words[0]])
            (line,) = complaint.splitlines()
            assert f"pip install 'cubecast[{extra}]'" in line, (words, line, error)


@pytest.mark.parametrize("number", range(len(EXPECTED["docs/quickstart.md"])))
def test_the_quick_start(plain: PlainInstall, number: int):
    program = BLOCK.findall((ROOT / "docs/quickstart.md").read_text())[number]
    done = plain.run(plain.python, "-c", program)
    assert (done.stdout, done.stderr, done.returncode) == (EXPECTED["docs/quickstart.md"][number], "", 0)


@contextmanager
def there(plain: PlainInstall, *words: object) -> Iterator[Running]:
    with running(*words, errors_too=True, program=(str(plain.program),), env=plain.environment) as command:
        yield command


def test_two_nodes_and_what_people_type(plain: PlainInstall):
    with there(plain, "node", "--json") as first:
        one = json.loads(first.line())["address"]
        with there(plain, "node", "--json", "--join", one) as second:
            other = json.loads(second.line())["address"]
            with there(plain, "sub", "greetings", "--node", other, "--count", 1) as heard:
                assert heard.line() == "subscribed to greetings"
                assert plain.run(plain.program, "pub", "greetings", "hello", "--node", one).returncode == 0
                assert heard.line() == "hello"
            status = json.loads(plain.run(plain.program, "status", "--json", "--node", one).stdout)
            assert len(status["members"]) == 2
            assert plain.run(plain.program, "held", "--node", one).returncode == 0
            assert second.stop() == 0
        assert first.stop() == 0


def test_a_log_is_read_as_arrow_where_arrow_is(plain: PlainInstall):
    found = plain.evaluate(READS_A_LOG)
    assert isinstance(found, list)
    kind, text = found
    assert kind == "BadInput" and "pip install 'cubecast[arrow]'" in text


def test_clients_do_without_what_windows_does_not_have():
    program = (
        "import sys\n"
        "for name in ('fcntl', 'resource', 'uvloop'):\n"
        "    sys.modules[name] = None\n"
        "import cubecast, cubecast.cli.pub_sub, cubecast.cli.status\n"
        "print(cubecast.connect.__name__, cubecast.sync.connect.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("connect connect\n", "")


def test_the_document_says_what_brings_what():
    """The table of extras against the project's own."""
    text = (ROOT / "docs/installing.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    told = re.findall(r"(?m)^\| `(\w+)` \|", text)
    assert set(told) == set(extras) - {"bench", "peers", "docs", "dev"}
    for extra, many in NEED_MORE.items():
        (row,) = re.findall(rf"(?m)^\| `{extra}` \|.*$", text)
        assert all(f"`{words[0]}`" in row or f"`{words[0]} {words[1]}" in row for words in many), (extra, row)
