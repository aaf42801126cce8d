"""CONTRIBUTING.md names the files that an everyday change touches: they are there, and at most four each."""

import re

import pytest

from support.sources import PACKAGE, ROOT

MOST = 4
ROWS = re.findall(
    r"^\| (An? [^|]+) \| ([^|]+) \| ([^|]+) \|$",
    (ROOT / "CONTRIBUTING.md").read_text().partition("## Everyday changes")[2],
    re.MULTILINE,
)


def test_all_of_them_are_told():
    assert len(ROWS) == 13  # metrics are of living nodes and of traces


@pytest.mark.parametrize(("change", "files", "more"), ROWS, ids=[row[0] for row in ROWS])
def test_files_are_few_and_there(change: str, files: str, more: str):
    named = re.findall(r"`([^`]+)`", files)
    assert 0 < len(named) <= MOST and ", ".join(f"`{name}`" for name in named) == files, change
    for name in (*named, *re.findall(r"`(\w+(?:/[\w.]+)+)`", more)):
        assert (PACKAGE / name).exists() or (ROOT / name).exists(), f"{change}: {name}"
