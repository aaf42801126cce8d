"""What a directory holds that can be reported: traces, reproductions, comparisons, sweeps."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.experiments.comparison.compare import COMPARISON
from cubecast.experiments.reproduction import REPRODUCTION_SUFFIX
from cubecast.experiments.sweep.results import About, read_results
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
