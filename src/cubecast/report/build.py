"""From a directory to HTML: find what is there, judge and measure its traces, draw.

One page holds everything; where several papers were reproduced, each has a page of its own beside it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.errors import BadInput
from cubecast.experiments.comparison.compare import COMPARISON
from cubecast.experiments.reproduction import REPRODUCTION_SUFFIX
from cubecast.experiments.sweep.store import About, read_results
from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.verdict import Verification
from cubecast.report.document import Section, page, require_drawing, write_page
from cubecast.report.small_or_spark import SparkIfAsked, Tell, measure_traces, verify_traces
from cubecast.trace.schema import RUN_FILE

_LEDGER_KEYS = {"experiment", "title", "reading", "runs", "seed", "rows", "beside", "series"}
_COMPARISON_KEYS = {"size", "runs", "seed", "rows"}


@dataclass(frozen=True)
class ReportSources:
    has_traces: bool
    reproductions: list[dict[str, Any]]
    sweeps: list[tuple[About, list[dict[str, Any]]]]
    comparisons: list[dict[str, Any]]


def find_sources(directory: Path) -> ReportSources:
    """Everything in and below the directory; BadInput when there is nothing, or something is damaged."""
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise BadInput(f"{directory} {what}; name one with traces, a reproduction or a sweep in it")
    found = ReportSources(
        any(True for _ in directory.rglob(RUN_FILE)),
        [_results(path, _LEDGER_KEYS, "reproduce") for path in sorted(directory.rglob(f"*{REPRODUCTION_SUFFIX}"))],
        [read_results(path) for path in _sweep_results(directory)],
        [_results(path, _COMPARISON_KEYS, "compare") for path in sorted(directory.rglob(COMPARISON))],
    )
    if not (found.has_traces or found.reproductions or found.sweeps or found.comparisons):
        raise BadInput(f"{directory} holds nothing to report: no trace, reproduction, comparison or finished sweep")
    return found


def _sweep_results(directory: Path) -> Iterator[Path]:
    for manifest in sorted(directory.rglob("sweep.json")):
        results = manifest.with_name("results.parquet")
        if results.is_file():
            yield results


def _results(path: Path, keys: set[str], command: str) -> dict[str, Any]:
    """What that command wrote with --out."""
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        raise BadInput(f"{path} cannot be read as JSON") from None
    if not isinstance(report, dict) or not report.keys() >= keys:
        raise BadInput(f"{path} is not what `cubecast {command} --out` writes")
    return report


def build_report(directory: Path, out: Path, spark: SparkIfAsked, tell: Tell) -> dict[str, Any]:
    """Write the page to `out`; what is in it. A session is asked for only if there are large traces."""
    require_drawing()
    found = find_sources(directory)
    origin = f"Made by cubecast {__version__} with: cubecast report {directory}"
    papers = list(_pages_of_papers(found, out, origin, tell))
    sections = list(_sections(directory, found, [path.name for path in papers], spark, tell))
    tell("drawing")
    write_page(out, page(f"cubecast: {directory.resolve().name}", sections, origin))
    return {
        "report": str(out),
        "papers": [str(path) for path in papers],
        "sections": [section.title for section in sections],
        "reproductions": [report["experiment"] for report in found.reproductions],
        "sweeps": [about.sweep for about, _ in found.sweeps],
    }


def write_trace_report(title: str, verification: Verification, metrics: Metrics, out: Path, command: str) -> None:
    """Of traces that were judged and measured already; `command` makes them again."""
    origin = f"Made by cubecast {__version__} with: {command}"
    write_page(out, page(title, _trace_sections(verification, metrics), origin))


def _trace_sections(verification: Verification, metrics: Metrics) -> list[Section]:
    # Imported here, as below: these modules draw, and whether that is possible must be asked first.
    from cubecast.report.trace_section import trace_sections

    return trace_sections(verification, metrics)


def _pages_of_papers(found: ReportSources, out: Path, origin: str, tell: Tell) -> Iterator[Path]:
    """Written beside the report, one for each reproduction if there are several; in their order."""
    from cubecast.report.reproduction_section import reproduction_section

    if len(found.reproductions) < 2:
        return
    for report in found.reproductions:
        tell(f"drawing {report['experiment']}")
        path = out.with_name(f"{out.stem}-{report['experiment']}.html")
        write_page(path, page(f"cubecast: {report['experiment']}", [reproduction_section(report)], origin, out.name))
        yield path


def _sections(
    directory: Path, found: ReportSources, papers: list[str], spark: SparkIfAsked, tell: Tell
) -> Iterator[Section]:
    from cubecast.report.reproduction_section import literature_section, reproduction_section
    from cubecast.report.sweep_section import comparison_section, sweep_section

    if found.has_traces:
        verification = verify_traces([directory], None, spark, tell)
        yield from _trace_sections(verification, measure_traces([directory], spark, tell))
    if papers:
        names = [report["experiment"] for report in found.reproductions]
        yield literature_section(found.reproductions, dict(zip(names, papers, strict=True)))
    else:
        yield from map(reproduction_section, found.reproductions)
    yield from map(comparison_section, found.comparisons)
    for about, rows in found.sweeps:
        yield sweep_section(about, rows)
