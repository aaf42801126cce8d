"""Figure 5.11: half of the processes are replaced, a share of them every δ; what the others deliver, and when."""

from collections.abc import Iterator
from typing import Any

from cubecast.experiments.claims import claim
from cubecast.experiments.epto.figure_5_9 import delay
from cubecast.experiments.epto.point import CLOCKS, Results, setting
from cubecast.experiments.ledger import Finding

PROCESSES = 100
CHURN = (0.0, 0.05, 0.1, 0.2, 0.5)


def settings() -> list[dict[str, Any]]:
    """Without churn it is a setting of Figure 5.9."""
    return [_setting(churn) for churn in CHURN if churn]


def _setting(churn: float) -> dict[str, Any]:
    return setting(PROCESSES, CLOCKS[0], churn=churn)


def findings(results: Results) -> Iterator[Finding]:
    orderly = {
        churn: all(results.each(_setting(churn), lambda run: run["clean"] == 1.0 and not run["inversions"]))
        for churn in CHURN
    }
    survived = 0.0
    for churn, well in orderly.items():
        if not well:
            break
        survived = churn
    calm = delay(results, _setting(0.0))
    note = "delay " + ", ".join(
        f"{100 * churn:g} %: {100 * (delay(results, _setting(churn)) / calm - 1):+.1f} %" for churn in CHURN[1:]
    )
    yield Finding(claim("EP-CHURN"), 100 * survived, note=note)
