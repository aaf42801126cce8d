"""What a measurement gives, however it was made: small tables in memory, the longer ones as they were computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from cubecast.pipeline.metrics import tables
from cubecast.pipeline.metrics.headers import Header
from cubecast.pipeline.metrics.summary import STATISTICS, over_runs
from cubecast.pipeline.outputs import require_new

_TOTALS = pa.schema(
    [
        ("run", pa.string()),
        *((name, pa.int64()) for name in tables.TOTALS),
        *((name, pa.float64()) for name in tables.RATIOS),
    ]
)
_DISTRIBUTIONS = pa.schema(
    [
        *(("run", pa.string()), ("metric", pa.string()), ("count", pa.int64())),
        *((name, pa.float64()) for name in STATISTICS if name != "count"),
    ]
)
_OVER_RUNS = pa.schema(
    [
        *(("setting", pa.string()), ("metric", pa.string()), ("runs", pa.int64())),
        *((name, pa.float64()) for name in ("mean", "std", "ci99", "min", "max")),
    ]
)


@dataclass(frozen=True)
class Metrics:
    """Figures of any number of runs."""

    runs: list[dict[str, Any]]
    """Per run: header, totals, and one `{count, mean, std, ci99, min, p50, p90, p99, max}` per distribution."""
    over_runs: list[dict[str, Any]]
    """Per setting and metric, over runs that differ in nothing but their seed."""
    frames: Mapping[str, DataFrame | pa.Table]
    wall_seconds: float
    refused: Sequence[str] = ()
    """Why other runs are not among them; each reason names its file."""

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "over_runs": self.over_runs,
            "refused": list(self.refused),
            "wall_seconds": round(self.wall_seconds, 3),
        }

    def table(self, name: str) -> pa.Table:
        """A table in memory; of `nodes`, `histograms` and `quantiles` Spark computes it now."""
        found = self.frames[name]
        return found if isinstance(found, pa.Table) else found.toArrow()

    def write(self, directory: Path) -> None:
        """Every table as Parquet under `directory`, which must be new or empty, one folder each."""
        require_new(directory)
        for name, frame in self.frames.items():
            if isinstance(frame, pa.Table):
                (directory / name).mkdir(parents=True)
                pq.write_table(frame, directory / name / "part-00000.parquet")
            else:
                frame.write.parquet(str(directory / name))


def metrics_of(
    headers: Sequence[Header],
    totals: Mapping[str, dict[str, Any]],
    distributions: Sequence[dict[str, Any]],
    frames: Mapping[str, DataFrame | pa.Table],
    seconds: float,
    refused: Sequence[str] = (),
) -> Metrics:
    """`totals` by run, complete with ratios; `distributions` rows of run, metric and the statistics."""
    across = over_runs(_one_value_per_run(headers, totals, distributions))
    small = {
        "totals": pa.Table.from_pylist(list(totals.values()), _TOTALS),
        "distributions": pa.Table.from_pylist(list(distributions), _DISTRIBUTIONS),
        "over_runs": pa.Table.from_pylist(across, _OVER_RUNS),
    }
    return Metrics(_per_run(headers, totals, distributions), across, {**small, **frames}, seconds, refused)


def _one_value_per_run(
    headers: Sequence[Header], totals: Mapping[str, dict[str, Any]], distributions: Sequence[dict[str, Any]]
) -> dict[tuple[str, str], list[float]]:
    """(setting, metric) → the mean of a distribution, or a total, of each run that has it."""
    setting = {header.run: header.setting for header in headers}
    found: dict[tuple[str, str], list[float]] = {}
    for run, total in totals.items():
        for name in (*tables.TOTALS, *tables.RATIOS):
            if total.get(name) is not None:
                found.setdefault((setting[run], name), []).append(float(total[name]))
    for row in distributions:
        found.setdefault((setting[row["run"]], row["metric"]), []).append(row["mean"])
    return found


def _per_run(
    headers: Sequence[Header], totals: Mapping[str, dict[str, Any]], distributions: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    spread: dict[str, dict[str, Any]] = {}
    for row in sorted(distributions, key=lambda row: str(row["metric"])):
        spread.setdefault(row["run"], {})[row["metric"]] = {name: row[name] for name in STATISTICS}
    return [
        {**header.to_json(), **totals.get(header.run, {}), **spread.get(header.run, {})}
        for header in sorted(headers, key=lambda header: header.run)
    ]
