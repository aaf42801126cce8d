"""Documents are wrapped, so that a difference shows what was changed: `make format` does it."""

from pathlib import Path

import pytest
from scripts.wrap import LIMIT, documents, too_long, wrapped

from support.sources import each, folder

LONG = "a word " * 20


@each("paths", documents(), folder)
def test_lines_can_be_read_in_a_difference(paths: list[Path]):
    for path in paths:
        found = [number for number, _ in too_long(path.read_text())]
        assert not found, f"{path} has lines above {LIMIT} characters, {found}: `make format` wraps them"


@pytest.mark.parametrize(
    "text",
    [f"{LONG}\n", f"- {LONG}\n  and more\n- short\n", f"1. {LONG}\n", f"a line\n{LONG}\n\nanother\n"],
)
def test_what_is_long_is_wrapped_and_nothing_else_changed(text: str):
    done = wrapped(text)
    assert not list(too_long(done))
    assert done.split() == text.split()
    assert wrapped(done) == done


@pytest.mark.parametrize("text", [f"# {LONG}\n", f"| {LONG} |\n", f"```\n{LONG}\n```\n", "x" * 200 + "\n"])
def test_what_cannot_be_wrapped_is_left_alone(text: str):
    assert wrapped(text) == text
    assert not list(too_long(text))


def test_no_line_begins_with_what_means_something_else():
    text = f"{'x' * (LIMIT - 2)} 1. - # > word\n"
    assert all(line.split()[0] in ("x" * (LIMIT - 2), "word") for line in wrapped(text).splitlines())
