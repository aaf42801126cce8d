"""`cubecast protocols` shows what is declared, and names what there is when asked for something else."""

import json

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.cli.screen import output
from cubecast.protocol.families import FAMILIES, find


def run(*words: str):
    return CliRunner().invoke(main, ["protocols", *words])


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a terminal wide enough to break no line."""
    monkeypatch.setattr(output, "width", 400)


def test_the_list_names_every_family_and_its_promises():
    said = run().output
    for name in FAMILIES:
        assert name in said and find(name).summary in said
    assert [one["name"] for one in json.loads(run("--json").output)["protocols"]] == list(FAMILIES)


def test_the_list_fits_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output, "width", 80)
    lines = run().output.splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in "".join(lines) and len(lines) < 5 * len(FAMILIES)
    rows = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in lines if line.count("│") == 4}
    assert {name for name in FAMILIES if rows[name] == "yes"} == {name for name in FAMILIES if find(name).live}


@pytest.mark.parametrize("name", FAMILIES)
def test_one_family_is_shown_with_parameters_packets_and_where_to_read(name: str):
    said, family = run(name).output, find(name)
    for one in family.settings.values():
        assert one.name in said and one.text in said
    assert all(cls.__name__ in said for cls in family.packets if cls)
    assert family.described in said


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pigeon", "there are cubecast"),
        ("no.such.module:X", "no protocol is declared at 'no.such.module:X'"),
        ("cubecast.ids:NodeId", "that is a type"),
    ],
)
def test_what_is_none_is_refused_in_one_line(name: str, told: str):
    result = run(name)
    assert result.exit_code == 2 and told in result.stderr and result.stderr.count("\n") == 1
