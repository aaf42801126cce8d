"""`cubecast report`: what the page says, that it needs nothing from outside, and one line when it cannot be written."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from cubecast.check.mutate import MUTATORS
from cubecast.cli import main
from cubecast.experiments.demo import DAMAGE
from cubecast.experiments.ledger import Claim, Comparison, Evidence, Explanation, Finding, Ledger
from cubecast.experiments.reproduction import Reproduction, write_reproduction
from cubecast.experiments.sweep.grid import Sweep
from cubecast.experiments.sweep.store import About, SweepStore, write_results
from cubecast.report import drawings
from cubecast.report.document import Grid, Section, cell, duration, page
from cubecast.report.story import Story, StoryMark
from cubecast.report.trace_section import MEANINGS, meaning, short_names
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_memory
from cubecast.trace.reader import Trace
from cubecast.trace.schema import PROPERTIES, WELL_FORMED
from support.agreeing import write_trace

CLAIMS = [
    Finding(Claim("C-1", "Table 9", "packets <saved>", 10.0, "%", Comparison.RELATIVE, 0.2), 11.0),
    Finding(Claim("C-2", "Fig. 9", "latency", 5.0, "u.t.", Comparison.POINTS, 1), 9.0, note="± 2"),
]


def report(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def pictures(text: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", text[text.index("<main>") :], flags=re.S)


@pytest.fixture
def reproduced(tmp_path: Path) -> Path:
    ledger = Ledger(
        CLAIMS, {"C-2": Explanation("the paper's clock is another", 8, 10, [Evidence("its clock", 2, 1, 3)])}
    )
    series = {
        "Table 9": {"nodes": [8, 16], "saved, paper": [None, 10.0], "saved, ours": [9.0, 11.0]},
        "Figure 90": {"rounds": [0, 1], "links, ours": [2.0, 1.0]},
    }
    beside = {"as printed": Ledger(CLAIMS[:1])}
    done = Reproduction("nine", "Chapter 9", "r", 3, 1, ledger, beside, series).to_json()
    bands = {"Table 9": {"saved, ours": [[8.0, 9.5], None]}}
    write_reproduction(done | {"bands": bands}, tmp_path / "nine")
    return tmp_path


def sweep_in(directory: Path) -> None:
    sweep = Sweep("grow", {"nodes": [8, 16], "protocol": ["a", "b"]})
    SweepStore(directory).open(sweep)
    rows = [
        {"status": "ok", "nodes": nodes, "protocol": protocol, "packets": nodes * k}
        for nodes in (8, 16)
        for k, protocol in enumerate("ab", 1)
    ]
    write_results(rows, SweepStore(directory).results, About("grow", 1, ["nodes", "protocol"], ["packets"]))


def test_a_reproduction_is_its_ledger_its_reasons_and_its_plots(reproduced: Path):
    done = report(reproduced)
    assert done.exit_code == 0, done.output
    assert str(reproduced / "report.html") in done.stdout.replace("\n", "")
    text = (reproduced / "report.html").read_text()
    for words in ("Chapter 9", "C-1", "reproduced", "explained", "another", "± 2", "1 of 2 rows", "ours, as printed"):
        assert words in text
    assert "packets &lt;saved&gt;" in text
    assert "<saved>" not in text
    figures = re.findall(r"<figure.*?</figure>", text, flags=re.S)
    assert [figure.count("<svg") for figure in figures] == [2, 1, 1], "a place has its curves and its claims as bars"
    assert ["intervals of 95 %" in figure for figure in figures] == [True, False, False]
    assert "Figure 90" in figures[2], "no part of Fig. 9"


def test_the_page_needs_nothing_from_outside_and_is_the_same_each_time(reproduced: Path):
    report(reproduced)
    first = (reproduced / "report.html").read_text()
    assert not re.search(r"https?://|<script|<link|<img|@import|url\((?!#)", first)
    assert not re.findall(r'href="(?!#)[^"]*"', first)
    report(reproduced)
    assert (reproduced / "report.html").read_text() == first


def test_several_papers_have_a_page_each_and_an_index(reproduced: Path):
    ledger = Ledger(CLAIMS, claims=[Claim("C-3", "Table 7", "hops", 4.0, "hops", Comparison.EXACT)])
    write_reproduction(Reproduction("seven", "Chapter 7", "r", 3, 1, ledger).to_json(), reproduced / "seven")
    done = report(reproduced, "--json")
    assert done.exit_code == 0, done.output
    index = (reproduced / "report.html").read_text()
    papers = [Path(path) for path in json.loads(done.stdout)["papers"]]
    assert [path.name for path in papers] == ["report-nine.html", "report-seven.html"]
    for path in papers:
        assert f'href="{path.name}"' in index
        assert 'href="report.html"' in path.read_text()
    assert "not run" in index
    tiles = dict(re.findall(r"<dt>([^<]*)</dt>\s*<dd>([^<]*)</dd>", index))
    assert tiles == {"reproduced": "2", "explained": "1", "not run": "1", "differs": "1"}
    assert "C-3" not in index, "the index names what is not reproduced, not what was left out"


def test_a_claim_leads_to_its_figure_and_the_figure_to_its_command(reproduced: Path):
    report(reproduced)
    text = (reproduced / "report.html").read_text()
    targets = re.findall(r'<td[^>]*><a href="#([^"]*)"', text)
    assert targets == ["table-9", "fig-9"]
    assert all(text.count(f'id="{target}"') == 1 for target in targets)
    assert "cubecast reproduce &#34;Table 9&#34;" in text


def test_bars_that_would_have_no_length_are_left_out_where_there_are_curves(tmp_path: Path):
    def figures(series: dict) -> list[int]:
        shape = Finding(Claim("C-1", "Fig. 9", "constant", 0.0, "off", Comparison.SHAPE), 0.0, holds=True)
        write_reproduction(Reproduction("nine", "", "", 1, 1, Ledger([shape]), series=series).to_json(), tmp_path)
        report(tmp_path)
        text = (tmp_path / "report.html").read_text()
        return [figure.count("<svg") for figure in re.findall(r"<figure.*?</figure>", text, flags=re.S)]

    assert figures({"Figure 9": {"nodes": [8, 16], "delay, ours": [2.0, 2.0], "delay, paper": [2.0, 2.0]}}) == [1]
    assert figures({}) == [1], "a link needs somewhere to lead"


def test_the_papers_lines_lie_below_ours_and_are_named_once():
    from cubecast.report import plots

    curves = {"a": [1.0, 2.0], "a by the paper": [1.0, 2.0], "b": [3.0, 4.0], "b by the paper": [3.0, 4.0]}
    (drawn,) = plots.lines([8, 16], {"delay": curves}, "nodes", bands={"delay": {"a": [None, [1.5, 2.5]]}})
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert [word for word in words if word in ("a", "b", "paper")] == ["a", "paper", "b"]
    assert drawn.count("FillBetween") == 1


def test_a_sweep_is_its_means_and_a_plot(tmp_path: Path):
    sweep_in(tmp_path / "sweep")
    done = report(tmp_path, "--out", tmp_path / "pages" / "sweep.html", "--json")
    assert json.loads(done.stdout)["sweeps"] == ["grow"]
    text = (tmp_path / "pages" / "sweep.html").read_text()
    assert "4 points, 0 failed" in text
    assert "Means over nodes" in text
    assert len(pictures(text)) == 1


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """Reports of a run with a crash and a late subscriber, and of a copy in which a cause comes after its effect."""
    place = tmp_path_factory.mktemp("runs")
    info, events, _ = simulate_to_memory(SimConfig("vcube-ps", nodes=8, publishers="100%", workload="respond:2:400"))
    mutant = MUTATORS[DAMAGE].apply(events, Random(1))
    assert mutant is not None
    found = {}
    for name, rows in (("whole", events), ("damaged", mutant)):
        write_trace(place / name, Trace(replace(info, run=f"run <{name}>"), rows))
        done = report(place / name)
        assert done.exit_code == 0, done.output
        found[name] = (place / name / "report.html").read_text()
    return found


def test_verdicts_are_told_promise_by_promise_in_words_with_their_occasions(pages):
    text = pages["whole"]
    assert "<dd>VALID</dd>" in text
    assert "Causes come before effects" in text
    said = r"<td[^>]*>Only what was published is delivered</td><td[^>]*>[\d,]+ deliveries"
    line = r'<td[^>]* class="VALID">VALID</td>' + said
    assert re.search(line, text)
    assert "Smallest witnesses" not in text


def test_what_nothing_put_to_the_test_is_said_as_the_judge_says_it(tmp_path):
    info, events, _ = simulate_to_memory(SimConfig("cubecast", nodes=8, publishers="100%"))
    write_trace(tmp_path / "run", Trace(info, events))
    judged = json.loads(CliRunner().invoke(main, ["verify", str(tmp_path), "--json"]).stdout)
    assert report(tmp_path).exit_code == 0
    text = (tmp_path / "report.html").read_text()
    told = re.findall(r"<td[^>]*>(\w+)</td><td[^>]*>VALID, vacuous</td>", text)
    assert set(told) == set(judged["vacuous"]) and {"K1", "P14"} <= set(told)
    assert f"{len(told)} of them vacuous" in text
    for name in ("P4", "P8", "P14"):
        assert re.search(rf">{name}</td>.*?>{judged['premises'][name]:,} (deliveries|publications|pairs) ", text)


def test_what_happens_again_and_again_is_named_once():
    marks = [StoryMark(at, what, 3) for at, what in ((10.0, "killed"), (11.0, "suspected"), (12.0, "suspected"))]
    drawn = drawings.timeline(Story(0.0, 1.0, [1] * 120, [0] * 120, marks, 1, None), "s")
    assert drawn.count(" node 3 killed ") == drawn.count(" node 3 suspected ") == 1


def test_every_promise_has_words():
    assert set(MEANINGS) >= {"K0", "P1", "P13"}
    assert all(meaning(name) for name in (*WELL_FORMED, *PROPERTIES))


def test_a_violation_is_drawn_as_a_space_time_diagram(pages):
    text = pages["damaged"]
    assert "<dd>VIOLATED</dd>" in text
    assert "which it depends on" in text
    (scene,) = [one for one in pictures(text) if ">node " in one and "publish " in one][:1]
    assert scene.count("deliver ") >= 2
    assert "var(--bad)" in scene, "the row that shows it is marked"
    assert not any("publish " in one and ">node " in one for one in pictures(pages["whole"]))


def test_a_page_tells_the_timeline_the_tree_the_latencies_and_where_it_comes_from(pages):
    text = pages["whole"]
    for words in (
        "Timeline of run &lt;whole&gt;",
        "A publication of node",
        "delivery latency",
        "seed",
        "Made by cubecast",
    ):
        assert words in text
    assert "% of values up to" in text
    assert re.search(r"<td[^>]*>20\d\d-\d\d-\d\d\s\d\d:\d\d\sUTC", text)


def test_colours_are_the_pages_own_by_day_and_by_night(pages):
    drawn = "".join(pictures(pages["damaged"]))
    assert not re.search(r"(?:fill|stroke): #(?!ffffff)", drawn), "a colour that is not a variable"
    assert "prefers-color-scheme: dark" in pages["damaged"]


@pytest.mark.parametrize(
    ("values", "hidden"),
    [([1.0, 2.0, 3.0, 4.0, 5.0], False), ([0.1, 0.1, 0.2, 0.2, 50.0], True), ([0.0] * 10, False), ([0.1, 90.0], False)],
)
def test_axes_are_logarithmic_where_curves_would_hide(values: list[float], hidden: bool):
    from cubecast.report.plots import hides

    assert hides(values) is hidden


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0, "s", "0 s"),
        (2.5e-5, "s", "25 µs"),
        (0.0123, "s", "12.3 ms"),
        (3.0, "s", "3 s"),
        (12.0, "u.t.", "12.00 u.t."),
    ],
)
def test_times_are_shown_in_what_suits_their_size(value: float, unit: str, shown: str):
    assert duration(value, unit) == shown


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda place: place.rmdir(), "does not exist"),
        (lambda place: None, "holds nothing to report"),
        (lambda place: (place / "x.reproduction.json").write_text("{"), "cannot be read as JSON"),
        (
            lambda place: (place / "x.reproduction.json").write_text("{}"),
            "is not what `cubecast reproduce",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, prepare, says: str):
    place = tmp_path / "place"
    place.mkdir()
    prepare(place)
    done = report(place)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
def test_what_is_not_installed_is_named(reproduced: Path, monkeypatch, name: str):
    monkeypatch.setitem(sys.modules, name, None)
    done = report(reproduced)
    assert done.exit_code == 2
    assert done.stderr == f"cubecast: a report needs {name}, missing here: pip install 'cubecast[report]'\n"


def test_settings_are_named_by_what_differs():
    one, other = ({"protocol": "p", "nodes": 8, "window": 1.0, "seedless": w} for w in (1, 2))
    assert list(short_names([json.dumps(one), json.dumps(other)]).values()) == [
        "protocol p, nodes 8, seedless 1",
        "protocol p, nodes 8, seedless 2",
    ]


def test_cells_are_escaped_and_numbers_readable():
    text = page("<t>", [Section("s", ["<p>"], [Grid("g", ["h"], [["<td>"]])])])
    assert "&lt;t&gt;" in text
    assert "&lt;p&gt;" in text
    assert "&lt;td&gt;" in text
    assert [cell(value) for value in (None, 12345, 1234.5, 0.5, 0.0123, 0.0, "x")] == [
        *("–", "12,345", "1,234", "0.50", "0.012", "0.00", "x")
    ]
