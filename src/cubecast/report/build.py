"""From a directory to one HTML page: find what is there, judge and measure its traces, draw."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.verdict import Verification
from cubecast.report.document import Section, page, require_drawing, write_page
from cubecast.report.small_or_spark import SparkIfAsked, Tell, measure_traces, verify_traces
from cubecast.report.sources import Sources, find_sources


def build_report(directory: Path, out: Path, spark: SparkIfAsked, tell: Tell) -> dict[str, Any]:
    """Write the page to `out`; what is in it. A session is asked for only if there are large traces."""
    require_drawing()
    found = find_sources(directory)
    sections = list(_sections(directory, found, spark, tell))
    tell("drawing")
    origin = f"Made by cubecast {__version__} with: cubecast report {directory}"
    write_page(out, page(f"cubecast: {directory.resolve().name}", sections, origin))
    return {
        "report": str(out),
        "sections": [section.title for section in sections],
        "reproductions": [report["experiment"] for report in found.reproductions],
        "sweeps": [about.sweep for about, _ in found.sweeps],
    }


def write_trace_report(title: str, verification: Verification, metrics: Metrics, out: Path) -> None:
    """Of traces that somebody has judged and measured already."""
    write_page(out, page(title, _trace_sections(verification, metrics), f"Made by cubecast {__version__}"))


def _trace_sections(verification: Verification, metrics: Metrics) -> list[Section]:
    # Imported here, as below: these modules draw, and whether that is possible must be asked first.
    from cubecast.report.trace_section import trace_sections

    return trace_sections(verification, metrics)


def _sections(directory: Path, found: Sources, spark: SparkIfAsked, tell: Tell) -> Iterator[Section]:
    from cubecast.report.reproduction_section import reproduction_section
    from cubecast.report.sweep_section import sweep_section

    if found.has_traces:
        verification = verify_traces([directory], None, spark, tell)
        yield from _trace_sections(verification, measure_traces([directory], spark, tell))
    for report in found.reproductions:
        yield reproduction_section(report)
    for about, rows in found.sweeps:
        yield sweep_section(about, rows)
