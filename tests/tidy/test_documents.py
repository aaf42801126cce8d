"""Every document is reached from the index, every anchor exists, and the README stays one screen.

`make docs` checks the same and more, with the docstrings; that takes longer (tests/deploy/test_site.py).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from support.sources import ROOT, each, folder

INDEX = ROOT / "docs" / "index.md"
README = ROOT / "README.md"
MOST_LINES = 60
NAMED = 5
TREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*\.md)?(?:#([\w-]+))?\)")
HEADING = re.compile(r"(?m)^#+ (.+)$")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _entries(path: Path) -> Iterator[Path]:
    for tree in TREE.findall(path.read_text()):
        for line in filter(None, (line.strip() for line in tree.splitlines())):
            if not line.startswith(":"):
                yield from path.parent.glob(f"{line}.md") if "*" in line else [(path.parent / f"{line}.md").resolve()]


def _reached() -> set[Path]:
    found, open_ = {INDEX}, [INDEX]
    while open_:
        new = set(_entries(open_.pop())) - found
        found |= new
        open_ += new
    return found


def test_every_document_is_reached_from_the_index():
    reached = _reached()
    assert all(path.exists() for path in reached), sorted(path for path in reached if not path.exists())
    assert set(DOCUMENTS) - {README} <= reached, set(DOCUMENTS) - reached


def _anchors(path: Path) -> set[str]:
    """As GitHub and the site make them."""
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text())
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@each("paths", DOCUMENTS, folder)
def test_anchors_lead_to_headings(paths: list[Path]):
    for path in paths:
        for target, anchor in LINK.findall(path.read_text()):
            if anchor:
                document = (path.parent / target).resolve() if target else path
                assert anchor in _anchors(document), f"{path} leads to {document}#{anchor}"


def test_the_first_page_is_one_screen_and_names_five_documents():
    text = README.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert len(re.findall(r"\]\([^)]+\)", text)) == NAMED
