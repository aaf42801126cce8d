"""Files and modules that text names are there: in comments, documents, scripts, and modules imported by name."""

import re
from pathlib import Path

from support.sources import PACKAGE, ROOT, each, folder, text_files

FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)+[\w-]+\.(?:py|md|toml|yaml|sh|csv))\b")
BARE = re.compile(r"`([\w-]+\.py)`")
"""A file without its folder, which the sentence around it tells."""
MODULE = re.compile(r"\bcubecast\.((?:[a-z]\w*\.)*[a-z]\w*)\b")
ROOMS = {path.stem for path in PACKAGE.iterdir()}
PLACES = (ROOT, PACKAGE, ROOT / "src", ROOT / "tests", ROOT / "docs")
FILES = {path.name for path in text_files()}
TEXTS = [path for path in text_files() if path.name not in ("CHANGELOG.md", "test_names.py")]
"""The list of changes tells of files that were."""


@each("paths", TEXTS, folder)
def test_what_is_named_exists(paths: list[Path]):
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in FILE.findall(line):
                assert any((place / name).exists() for place in (*PLACES, path.parent)), f"{path}:{number}: {name}"
            for name in BARE.findall(line):
                assert name in FILES, f"{path}:{number}: {name}"
            for name in MODULE.findall(line):
                assert _is_importable(name), f"{path}:{number}: cubecast.{name}"


def test_a_planted_name_is_found():
    assert FILE.findall("as `net/nothing.py` says") == ["net/nothing.py"]
    assert BARE.findall("as `nothing_at_all` and `nothing_there.py` say") == ["nothing_there.py"]
    assert "names.py" not in FILES and "test_names.py" in FILES
    assert _is_importable("check.checker.check_trace") and _is_importable("Node.publish")
    assert not _is_importable("check.elsewhere") and not _is_importable("protocol.hypercube.cubecast.machine")


def _is_importable(name: str) -> bool:
    """Whether a dotted name leads into a module, or to what a package's first file mentions."""
    place = PACKAGE
    first, *_ = name.split(".")
    if first not in ROOMS:
        return True
    for part in name.split("."):
        if (place / part).is_dir():
            place /= part
        else:
            start = place / "__init__.py"
            mentioned = start.exists() and re.search(rf"\b{part}\b", start.read_text()) is not None
            return (place / f"{part}.py").exists() or mentioned or (part.startswith("__") and place != PACKAGE)
    return True
