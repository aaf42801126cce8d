"""The chapter as sweeps: `cubecast sweep causal-aggregation` spreads the same points over Spark executors."""

from cubecast.experiments.causal_aggregation.chapter import SIZES
from cubecast.experiments.causal_aggregation.point import run_point
from cubecast.experiments.causal_aggregation.readings import CHOSEN, PUBLISHED, READINGS
from cubecast.experiments.sweep.grid import Parameters, Sweep
from cubecast.experiments.sweep.kinds import PointKind

POINT = "cubecast.experiments.causal_aggregation.sweeps:CHAPTER_POINT"
_SECONDS_PER_PACKET = 2.5e-6
"""Of the kernel, all its runs of a point together."""


def cost(parameters: Parameters) -> float:
    return float(parameters["nodes"]) ** 2 * _SECONDS_PER_PACKET


CHAPTER_POINT = PointKind(
    run_point,
    cost=cost,
    headline=("none_packets", "aggr_packets", "none_reception", "aggr_reception", "none_holding", "aggr_holding"),
)
CHAPTER = Sweep(
    "causal-aggregation", grid={"nodes": SIZES, "reading": (CHOSEN.name, PUBLISHED.name)}, runs=30, point=POINT
)
ALL_READINGS = Sweep(
    "causal-aggregation-readings", grid={"nodes": SIZES, "reading": tuple(READINGS)}, runs=3, point=POINT
)
