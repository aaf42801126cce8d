"""The chapter as sweeps: `cubecast sweep causal-aggregation` spreads the same points over Spark executors."""

from cubecast.experiments.causal_aggregation.chapter import SIZES
from cubecast.experiments.causal_aggregation.readings import CHOSEN, PUBLISHED, READINGS
from cubecast.experiments.sweep.grid import Sweep

POINT = "cubecast.experiments.causal_aggregation.point:run_point"
CHAPTER = Sweep(
    "causal-aggregation", grid={"nodes": SIZES, "reading": (CHOSEN.name, PUBLISHED.name)}, runs=30, point=POINT
)
ALL_READINGS = Sweep(
    "causal-aggregation-readings", grid={"nodes": SIZES, "reading": tuple(READINGS)}, runs=3, point=POINT
)
