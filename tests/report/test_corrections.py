"""Every marked deviation stands on its paper's page with a test that is there."""

from pathlib import Path

from cubecast.report.reproduction_section import corrections

ROOT = Path(__file__).parents[2]


def test_corrections_are_the_deviations_of_the_papers_documents():
    """Which are those marked in the code, as the tidy tests hold."""
    stated = {(row["paper"], row["place"]) for row in corrections()}
    documented = {
        (document.stem, line.split("|")[1].strip())
        for document in (ROOT / "docs" / "papers").glob("*.md")
        for line in document.read_text().partition("## Deviations")[2].split("\n## ")[0].splitlines()
        if line.startswith("|")
    }
    headings = {(paper, place) for paper, place in documented if place == "place" or set(place) <= set("- ")}
    assert stated == documented - headings
    assert len(stated) == len(corrections())


def test_each_names_a_test_that_is_there():
    for row in corrections():
        file, _, name = row["test"].partition("::")
        assert name in (ROOT / file).read_text(), row
