"""Figure 5.11: subscribers leave and others take their places, while a message is published every 500 ms.

The rates are those of Rhea et al., n · ln 2 / t per second for a median session t: the thesis prints the same numbers
per minute (46 for 4,000 subscribers and a minute), at which no tree would ever be contended. At these rates SRPT's root
is beyond saturation and its latency grows for as long as a run lasts; the printed 120 minutes are not compatible with
the printed latencies, 24 seconds are. That duration is fitted.
"""

from collections.abc import Iterator, Mapping
from math import log

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Evidence, Explanation, Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate

SIZES = {500: 512, 1000: 1024, 2000: 2048, 4000: 4096}
"""Nodes by subscribers: some are left to take the places of those who leave."""
MINUTE = 60_000.0
SLOW, FAST = 69_000.0, 7_000.0
"""Median sessions in ms: 1 and 10 % of a thousand subscribers leave within the time unit of the rates."""
VCUBE_TIME, SRPT_TIME = 4_000.0, 24_000.0
PER_MINUTE = 60.0
"""Times as slow, where the rates are per minute as printed."""
PRINTED_WAIT = 28.36
"""Longest mean wait in a queue at 10 % churn, ms per hop."""
HOP = 102.0


def run(point: Point) -> Figures:
    session = point["session"]
    config = SimConfig(
        protocol=point["system"],
        nodes=SIZES[point["subscribers"]],
        publishers="1",
        subscribers=str(point["subscribers"]),
        workload="periodic:500",
        window=point["time"],
        churn_session=session and session / log(2),
        seed=point["seed"],
    )
    figures = simulate(config)
    return {
        "latency": figures["reception_latency"]["mean"],
        "false": 100 * figures["false_positives"] / figures["messages_sent"],
    }


def _point(system: str, subscribers: int, session: float | None, time: float, seed: int) -> Point:
    return {"system": system, "subscribers": subscribers, "session": session, "time": time, "seed": seed}


def measure(runner: Runner, seed: int, slower: float = 1.0) -> dict[str, Figures]:
    """One run of each setting: its figures are means over hundreds of thousands of receptions."""
    minute, slow, fast = (slower * session for session in (MINUTE, SLOW, FAST))
    points = {"srpt minute": _point("srpt", 4000, minute, SRPT_TIME, seed)}
    for subscribers in reversed(SIZES):
        points[f"minute {subscribers}"] = _point("vcube-ps", subscribers, minute, VCUBE_TIME, seed)
        points[f"static {subscribers}"] = _point("vcube-ps", subscribers, None, VCUBE_TIME, seed)
    points |= {
        "fast": _point("vcube-ps", 1000, fast, VCUBE_TIME, seed),
        "slow": _point("vcube-ps", 1000, slow, VCUBE_TIME, seed),
        "srpt static": _point("srpt", 4000, None, VCUBE_TIME, seed),
    }
    return dict(zip(points, runner(run, list(points.values())), strict=True))


def findings(measured: Mapping[str, Figures]) -> Iterator[Finding]:
    latency = {name: figures["latency"] for name, figures in measured.items()}
    higher = {n: 100 * (latency[f"minute {n}"] / latency[f"static {n}"] - 1) for n in SIZES}
    note = ", ".join(f"{n} subscribers {value:+.1f} %" for n, value in higher.items())
    yield Finding(claim("PS-F511a"), max(higher.values()), note=note)
    note = f"{latency['srpt minute']:.0f} against {latency['srpt static']:.0f} ms after {SRPT_TIME / 1000:g} s"
    yield Finding(claim("PS-F511a-srpt"), latency["srpt minute"] / latency["srpt static"], note=note)
    note = f"{latency['slow']:.0f} → {latency['fast']:.0f} ms"
    yield Finding(claim("PS-F511b"), latency["fast"] / latency["slow"], note=note)
    yield Finding(claim("PS-F511b-fp"), measured["fast"]["false"])


def explanations(measured: Mapping[str, Figures]) -> dict[str, Explanation]:
    calm = measured["slow"]["latency"]
    allowed = 1 + PRINTED_WAIT * (calm / HOP) / calm
    return {
        "PS-F511b": Explanation(
            "Every change is one more broadcast, which all trees share: at 10 % a node's queue is far from full. The "
            "printed growth does not follow from the printed waits either: on every hop of the path they add a third.",
            0.9,
            1.5,
            [Evidence("growth that the printed waits on every hop make", allowed, 1.0, 1.5)],
        )
    }
