"""Which reading of the model explains the printed numbers: all readings, each with its distance to all claims."""

from collections.abc import Iterable, Iterator
from typing import Any

from cubecast.experiments.causal_aggregation.chapter import (
    QUICK_SIZES,
    SIZES,
    all_findings,
    balanced,
    run_chapter,
    run_rates,
)
from cubecast.experiments.causal_aggregation.readings import READINGS, Reading
from cubecast.experiments.ledger import Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort

RUNS = 3
"""Of the largest size; `balanced` for the others."""
SHOWN = ("CAB-T1-64-red", "CAB-T1-256-red", "CAB-T1-1024-red", "CAB-T2-2", "CAB-F43-none", "CAB-F44-1024-rec")
"""Claims whose values a comparison of readings shows beside the distance to all of them."""


def compare_readings(
    effort: Effort, runner: Runner, readings: Iterable[Reading] = tuple(READINGS.values())
) -> Iterator[dict[str, Any]]:
    """One row per reading, as each is finished."""
    sizes = QUICK_SIZES if effort.quick else SIZES
    runs = balanced(effort.runs or RUNS)
    rates = run_rates(runs, effort.seed, runner, sizes)
    for reading in readings:
        ledger = Ledger(all_findings(rates, run_chapter(reading, runs, effort.seed, runner, sizes)))
        values = {finding.claim.name: finding.ours for finding in ledger.findings}
        yield {
            "reading": reading.name,
            "why": reading.why,
            "distance": ledger.distance,
            "within_tolerance": ledger.within,
            "claims": len(ledger.findings),
            "values": {name: values[name] for name in SHOWN if name in values},
            "ledger": ledger.rows(),
        }
