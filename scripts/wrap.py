"""Wraps the lines of documents so that differences can be read: `python scripts/wrap.py`, part of `make format`.

A paragraph or list item is touched only where one of its lines is longer than the limit. Tables, headings and blocks of
code stay as they are, and so do words that would mean something else at the start of a line.
"""

import re
from collections.abc import Iterator
from pathlib import Path

LIMIT = 120
ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r" *(```|~~~)")
ITEM = re.compile(r"( *)([-*+]|\d+[.)]) +")
KEPT = re.compile(r" *(#|\||<|>|\[[^\]]+\]: |---|===|$)")
"""Lines that are no running text."""
MARKER = re.compile(r"([-*+]|\d+[.)]|#+|>.*|\|.*|=+|-+)$")
"""Words that would start something else than a line of the paragraph."""


MERGED_BY_LINE = "CHANGELOG.md"
"""Everybody adds lines at its end, and merges keep the lines of both: wrapping old ones would double them."""


def documents(root: Path = ROOT) -> list[Path]:
    found = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
    return [path for path in found if path.name != MERGED_BY_LINE]


def too_long(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of running text above the limit."""
    for number, line, is_text in _lines(text):
        if is_text and len(line) > LIMIT and " " in line.strip()[:LIMIT]:
            yield number, line


def wrapped(text: str) -> str:
    done: list[str] = []
    block: list[str] = []
    for _, line, is_text in _lines(text):
        if not is_text or ITEM.match(line) or _begins_apart(line, block):
            done += _filled(block)
            block = []
        if is_text:
            block.append(line)
        else:
            done.append(line)
    return "\n".join(done + _filled(block)) + "\n"


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Number, line, whether it is running text."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line) is not None
        yield number, line, not (fence or in_code or KEPT.match(line))
        in_code ^= fence


def _begins_apart(line: str, block: list[str]) -> bool:
    """A line that ends in a break, or a paragraph of another depth, is not joined with what stands before."""
    return bool(block) and block[-1].endswith(("  ", "\\")) and bool(line)


def _filled(block: list[str]) -> list[str]:
    if all(len(line) <= LIMIT for line in block):
        return block
    first = ITEM.match(block[0])
    start = first.group() if first else block[0][: len(block[0]) - len(block[0].lstrip())]
    rest = " " * len(start)
    words = " ".join([block[0][len(start) :], *(line.strip() for line in block[1:])]).split(" ")
    lines, line = [], start
    for word in words:
        is_first = line in (start, rest)
        if not is_first and len(line) + 1 + len(word) > LIMIT and not MARKER.match(word):
            lines.append(line)
            line, is_first = rest, True
        line += word if is_first else f" {word}"
    return [*lines, line]


def main() -> None:
    for path in documents():
        text = path.read_text()
        if any(too_long(text)):
            path.write_text(wrapped(text))


if __name__ == "__main__":
    main()
