"""Figure 5.10: 128 topics of 256 nodes, drawn for each message uniformly or by Zipf's law.

What Zipf's law costs SRPT is decided by where the roots of the popular topics fall: in most runs nothing, in a few,
where two share a node, several times the latency. VCube-PS pays at the source: a publication waits there for the
acknowledgements of the one before it on its topic. That wait counts here, from the request to the last hop. The text
gives SRPT's increase for 2^14 messages and that of VCube-PS "on average": over the figure's numbers of messages, of
which four are run here.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, TypeAlias

import numpy as np

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Evidence, Explanation, Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.vcube_ps.point import SYSTEMS
from cubecast.sim.kernels.tree_flood import Messages, TreeFlood

NODES, TOPICS = 256, 128
EACH = (1, 4, 16, 64)
"""Messages of each node: 2^8 to 2^14 in all."""
MESSAGES = EACH[-1]
PAUSE, SHORTER = 500.0, 475.0
ZIPF = 0.825
TOPIC_LAWS = {"uniform": 0.0, "Zipf": ZIPF}


Setting: TypeAlias = tuple[str, float, int, float]
"""System, exponent, messages of each node, mean pause."""
Measured: TypeAlias = Mapping[Setting, Sequence[Figures]]


def run(point: Point) -> Figures:
    """Mean latency from the request on, and what of it is waiting at the source. Both systems get the same draws."""
    rng = np.random.default_rng([point["seed"], round(1000 * point["zipf"])])
    each = point["messages"]
    times = rng.exponential(point["pause"], (NODES, each)).cumsum(axis=1).ravel()
    sources = np.repeat(np.arange(NODES), each)
    popularity = np.arange(1, TOPICS + 1) ** -float(point["zipf"])
    topics = rng.choice(TOPICS, len(times), p=popularity / popularity.sum())
    roots = rng.integers(NODES, size=TOPICS)
    own = point["system"] == "vcube-ps"
    asked = Messages(times, sources, sources if own else roots[topics], topics)
    done = TreeFlood(NODES, acknowledged=own).simulate(asked)
    wait = float((done.begun - times).mean())
    return {"latency": done.latency + wait, "wait": wait}


def measure(runner: Runner, seeds: Sequence[int]) -> dict[Setting, list[Figures]]:
    """The runs of each setting."""
    settings = [
        *((system, zipf, each, PAUSE) for system in SYSTEMS for zipf in TOPIC_LAWS.values() for each in EACH),
        *(("srpt", zipf, MESSAGES, SHORTER) for zipf in TOPIC_LAWS.values()),
    ]
    names = ("system", "zipf", "messages", "pause")
    points = [dict(zip(names, setting, strict=True)) | {"seed": seed} for setting in settings for seed in seeds]
    done = list(runner(run, points))
    return {setting: done[k * len(seeds) : (k + 1) * len(seeds)] for k, setting in enumerate(settings)}


def _higher(measured: Measured, system: str, messages: int = MESSAGES, pause: float = PAUSE) -> list[float]:
    """By how many percent each run with popular topics is above the mean of those without."""
    even = fmean(figures["latency"] for figures in measured[system, 0.0, messages, pause])
    return [100 * (figures["latency"] / even - 1) for figures in measured[system, ZIPF, messages, pause]]


def findings(measured: Measured) -> Iterator[Finding]:
    higher = _higher(measured, "srpt")
    spread = f"{min(higher):.1f} … {max(higher):.1f} in {len(higher)} runs"
    error = stdev(higher) / len(higher) ** 0.5 if len(higher) > 1 else 0.0
    yield Finding(claim("PS-F510-srpt"), fmean(higher), note=f"{spread}, standard error {error:.1f}")
    own = [fmean(_higher(measured, "vcube-ps", messages=each)) for each in EACH]
    note = f"{', '.join(f'{one:.1f}' for one in own)} with {', '.join(str(NODES * each) for each in EACH)} messages"
    yield Finding(claim("PS-F510-ps"), fmean(own), note=note)


def of_the_longest_run(measured: Measured) -> Iterator[Finding]:
    """VCube-PS where its increase is read, like SRPT's, as that of 2^14 messages."""
    waits = {
        zipf: fmean(figures["wait"] for figures in measured["vcube-ps", zipf, MESSAGES, PAUSE]) for zipf in (0.0, ZIPF)
    }
    note = f"of it waiting for acknowledgements at the source {waits[ZIPF]:.0f} u.t., uniform {waits[0.0]:.0f}"
    yield Finding(claim("PS-F510-ps"), fmean(_higher(measured, "vcube-ps")), note=note)


def series(measured: Measured) -> dict[str, Any]:
    """Figure 5.10, over the messages of a run."""
    return {"messages": [NODES * each for each in EACH]} | {
        f"latency from the request on, {system} {law}": [
            fmean(figures["latency"] for figures in measured[system, zipf, each, PAUSE]) for each in EACH
        ]
        for system in SYSTEMS
        for law, zipf in TOPIC_LAWS.items()
    }


def explanations(measured: Measured) -> dict[str, Explanation]:
    single = claim("PS-F510-srpt")
    return {
        single.name: Explanation(
            "The root of the most popular topic is nearly saturated, and beyond that where a second one shares its "
            "node: a mean of forty runs is mostly that of three or four of them, and pauses that are a twentieth "
            "shorter make it the printed one.",
            0,
            single.value - single.tolerance,
            [
                Evidence(
                    "with pauses of 475 u.t. (%)",
                    fmean(_higher(measured, "srpt", pause=SHORTER)),
                    single.value - single.tolerance,
                    single.value + single.tolerance,
                ),
                Evidence("most in a run (%)", max(_higher(measured, "srpt")), single.value + single.tolerance, 1000),
            ],
        )
    }
