"""Decisions have a status each and are cited by the code that follows them; what was measured for them stands apart."""

import re
from pathlib import Path

import pytest

from support.sources import ROOT

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
INDEX = (ROOT / "docs" / "decisions" / "README.md").read_text()
FIGURES = (ROOT / "docs" / "figures.md").read_text()
ROW = re.compile(r"^\| \[(\d{4})\]\((\S+)\) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
CITED = re.compile(r"decisions? ((?:\d{4}(?: and |, )?)+)")
SECTION = re.compile(r"^## (\d{4}): .*\n\n(.*\n(?:.+\n)*)", re.MULTILINE)


def _number(path: Path) -> str:
    return path.name[:4]


def _cited() -> set[str]:
    texts = (path.read_text() for top in ("src", "scripts") for path in (ROOT / top).rglob("*.py"))
    return {number for text in texts for found in CITED.findall(text) for number in re.findall(r"\d{4}", found)}


def test_the_index_has_each_decision_with_its_status():
    assert [(number, name) for number, name, _ in ROW.findall(INDEX)] == [
        (_number(path), path.name) for path in DECISIONS
    ]
    assert all(status.startswith(("in force", "replaced by 0")) for _, _, status in ROW.findall(INDEX))


def test_code_cites_what_it_follows():
    in_force = {number for number, _, status in ROW.findall(INDEX) if status.startswith("in force")}
    assert _cited() == in_force, (_cited() - in_force, in_force - _cited())


@pytest.mark.parametrize("path", DECISIONS, ids=_number)
def test_what_was_measured_stands_in_one_place(path: Path):
    for paragraph in path.read_text().split("\n\n"):
        assert not paragraph.lower().startswith("**measured") or "figures.md#" in paragraph, paragraph


def test_figures_say_command_day_and_machine():
    sections = SECTION.findall(FIGURES)
    assert len(sections) > 5
    for number, said in sections:
        facts = " ".join(said.split()).split(" · ")
        assert len(facts) == 4 and number in facts[0] and re.fullmatch(r"\d{4}-\d\d-\d\d", facts[1]), (number, facts)
        assert "cores" in facts[2] and ("`python -m bench." in facts[3] or "not kept" in facts[3])


def test_every_benchmark_is_listed():
    listed = set(re.findall(r"^\| `python -m bench\.(\w+)`", FIGURES, re.MULTILINE))
    there = {path.stem for path in (ROOT / "bench").glob("[a-z]*.py") if "\ndef main(" in path.read_text()}
    assert there <= listed, there - listed
    assert all((ROOT / "bench" / name).exists() or (ROOT / "bench" / f"{name}.py").exists() for name in listed)
