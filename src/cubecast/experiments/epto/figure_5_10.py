"""Figure 5.10: processes without holes when rounds are too short for the network, or drift."""

from collections.abc import Iterator
from typing import Any

from cubecast.experiments.claims import claim
from cubecast.experiments.epto.draws import PERIOD
from cubecast.experiments.epto.point import CLOCKS, Results, setting
from cubecast.experiments.ledger import Finding

PROCESSES = 100
PERIODS = (62.0, 42.0, 25.0, 15.0, 8.0)
DRIFTS = (1.0, 1.2, 1.5, 2.0)
MARKEDLY = 5.0
"""Points below 100 %."""


def settings() -> list[dict[str, Any]]:
    return [
        *(setting(PROCESSES, clock, period=period) for clock in CLOCKS for period in PERIODS),
        *(setting(PROCESSES, clock, drift=drift) for clock in CLOCKS for drift in DRIFTS),
    ]


def clean(results: Results, clock: str, **changes: Any) -> float:
    return 100 * results.mean(setting(PROCESSES, clock, **changes), lambda run: run["clean"])


def findings(results: Results) -> Iterator[Finding]:
    by_period = {period: clean(results, CLOCKS[0], period=period) for period in PERIODS}
    first_bad = max((period for period, share in by_period.items() if share < 100 - MARKEDLY), default=0.0)
    yield Finding(
        claim("EP-PERIOD"),
        min(period for period in PERIODS if period > first_bad) / PERIOD,
        holds=all(share >= 100 - MARKEDLY for period, share in by_period.items() if period > PERIOD / 3)
        and all(share < 100 - MARKEDLY for period, share in by_period.items() if period < PERIOD / 3),
        note="; ".join(
            f"{clock}: {_shares({period: clean(results, clock, period=period) for period in PERIODS})}"
            for clock in CLOCKS
        ),
    )
    note = "; ".join(
        f"{clock}: {_shares({drift: clean(results, clock, drift=drift) for drift in DRIFTS})}" for clock in CLOCKS
    )
    yield Finding(claim("EP-DRIFT"), clean(results, CLOCKS[0], drift=1.0), note=note)


def _shares(shares: dict[float, float]) -> str:
    return ", ".join(f"{key:g}: {share:.1f} %" for key, share in shares.items())
