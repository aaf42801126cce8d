"""Sizes, leftovers, paths, links and deviations: the rules of the house that a program can check."""

import ast
import re
from pathlib import Path

from support.sources import ROOT, Module, each, folder, modules, text_files

MOST_LINES = 500
MOST_FUNCTION_LINES = 50
LEFTOVERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")) + r")\b")
MACHINE_PATHS = re.compile(r"(?<![\w./<~-])/(work|tmp|home|Users|root)/\w")
DEVIATION = re.compile(r"# DEVIATION (?P<paper>[\w-]+) (?P<place>[^:]+):")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")

PYTHON = [path for path in text_files() if path.suffix == ".py"]
DOCUMENTS = [path for path in text_files() if path.suffix == ".md"]


@each("paths", PYTHON, folder)
def test_files_and_functions_are_small(paths: list[Path]):
    for path in paths:
        text = path.read_text()
        assert len(text.splitlines()) <= MOST_LINES, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                assert lines <= MOST_FUNCTION_LINES, f"{path}:{node.lineno}: {node.name} has {lines} lines"


@each("paths", text_files(), folder)
def test_nothing_is_left_for_later_and_no_machine_is_named(paths: list[Path]):
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not LEFTOVERS.search(line), f"{path}:{number}: {line.strip()}"
            assert not MACHINE_PATHS.search(line), f"{path}:{number}: {line.strip()}"


@each("paths", (path for path in PYTHON if path.is_relative_to(ROOT / "tests")), folder)
def test_tests_are_neither_skipped_nor_sleep(paths: list[Path]):
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            banned = ("time.sleep", "pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.importorskip")
            assert name not in banned, f"{path}:{node.lineno}: {name}"  # type: ignore[attr-defined]
            if name == "asyncio.sleep":  # giving way is not waiting
                assert ast.unparse(node.args[0]) == "0", f"{path}:{node.lineno}: a test that sleeps"  # type: ignore[attr-defined]


@each("paths", DOCUMENTS, folder)
def test_links_in_documents_lead_somewhere(paths: list[Path]):
    for path in paths:
        for target in LINK.findall(path.read_text()):
            if not re.match(r"[a-z]+:", target):
                assert (path.parent / target).exists(), f"{path} links to {target}"


def _deviations(module: Module) -> list[tuple[str, str, str]]:
    return [
        (match["paper"], match["place"].strip(), module.name) for match in DEVIATION.finditer(module.path.read_text())
    ]


def test_every_deviation_has_its_row():
    """`# DEVIATION <paper> <place>: why` in the code, `| <place> | ...` under Deviations in docs/papers/<paper>.md."""
    found = [deviation for module in modules() for deviation in _deviations(module)]
    assert found, "the pattern finds nothing, so it checks nothing"
    for paper, place, module in found:
        document = ROOT / "docs" / "papers" / f"{paper}.md"
        assert document.is_file(), f"{module} deviates from {paper}, which has no {document}"
        assert place in _deviation_rows(document), f"{document} has no row for {place!r} ({module})"


def test_every_deviation_row_is_marked_in_the_code():
    marked = {(paper, place) for module in modules() for paper, place, _ in _deviations(module)}
    for document in sorted((ROOT / "docs" / "papers").glob("*.md")):
        for place in _deviation_rows(document):
            assert (document.stem, place) in marked, f"{document}: {place!r} is marked nowhere in the code"


def _deviation_rows(document: Path) -> list[str]:
    """First cells of the table under the heading Deviations."""
    _, _, section = document.read_text().partition("## Deviations")
    rows = [line.split("|")[1].strip() for line in section.split("\n## ")[0].splitlines() if line.startswith("|")]
    return rows[2:]
