"""Many topics, subscribers that come and go, and brokers: Figures 5.10 to 5.12 of the thesis."""

from collections.abc import Iterator, Mapping, Sequence
from math import log
from statistics import fmean, stdev
from typing import Any, TypeAlias

import numpy as np

from cubecast.experiments.ledger import Evidence, Explanation, Finding, claim
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.vcube_ps.point import SYSTEMS
from cubecast.sim.config import SimConfig
from cubecast.sim.kernels.tree_flood import Messages, TreeFlood
from cubecast.sim.run import prepare, simulate

# Figure 5.10: 128 topics of 256 nodes, drawn for each message uniformly or by Zipf's law.
#
# What Zipf's law costs SRPT is decided by where the roots of the popular topics fall: in most runs nothing, in a few,
# where two share a node, several times the latency. VCube-PS pays at the source: a publication waits there for the
# acknowledgements of the one before it on its topic. That wait counts here, from the request to the last hop. The text
# gives SRPT's increase for 2^14 messages and that of VCube-PS "on average": over the figure's numbers of messages, of
# which four are run here.

NODES, TOPICS = 256, 128
EACH = (1, 4, 16, 64)
"""Messages of each node: 2^8 to 2^14 in all."""
TOPICS_MESSAGES = EACH[-1]
PAUSE, SHORTER = 500.0, 475.0
ZIPF = 0.825
TOPIC_LAWS = {"uniform": 0.0, "Zipf": ZIPF}


Setting: TypeAlias = tuple[str, float, int, float]
"""System, exponent, messages of each node, mean pause."""
Measured: TypeAlias = Mapping[Setting, Sequence[Figures]]


def run_of_topics(point: Point) -> Figures:
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


def measure_of_topics(runner: Runner, seeds: Sequence[int]) -> dict[Setting, list[Figures]]:
    """The runs of each setting."""
    settings = [
        *((system, zipf, each, PAUSE) for system in SYSTEMS for zipf in TOPIC_LAWS.values() for each in EACH),
        *(("srpt", zipf, TOPICS_MESSAGES, SHORTER) for zipf in TOPIC_LAWS.values()),
    ]
    names = ("system", "zipf", "messages", "pause")
    points = [dict(zip(names, setting, strict=True)) | {"seed": seed} for setting in settings for seed in seeds]
    done = list(runner(run_of_topics, points))
    return {setting: done[k * len(seeds) : (k + 1) * len(seeds)] for k, setting in enumerate(settings)}


def _higher(measured: Measured, system: str, messages: int = TOPICS_MESSAGES, pause: float = PAUSE) -> list[float]:
    """By how many percent each run with popular topics is above the mean of those without."""
    even = fmean(figures["latency"] for figures in measured[system, 0.0, messages, pause])
    return [100 * (figures["latency"] / even - 1) for figures in measured[system, ZIPF, messages, pause]]


def findings_of_topics(measured: Measured) -> Iterator[Finding]:
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
        zipf: fmean(figures["wait"] for figures in measured["vcube-ps", zipf, TOPICS_MESSAGES, PAUSE])
        for zipf in (0.0, ZIPF)
    }
    note = f"of it waiting for acknowledgements at the source {waits[ZIPF]:.0f} u.t., uniform {waits[0.0]:.0f}"
    yield Finding(claim("PS-F510-ps"), fmean(_higher(measured, "vcube-ps")), note=note)


def series_of_topics(measured: Measured) -> dict[str, Any]:
    """Figure 5.10, over the messages of a run."""
    return {"messages": [NODES * each for each in EACH]} | {
        f"latency from the request on, {system} {law}": [
            fmean(figures["latency"] for figures in measured[system, zipf, each, PAUSE]) for each in EACH
        ]
        for system in SYSTEMS
        for law, zipf in TOPIC_LAWS.items()
    }


def explanations_of_topics(measured: Measured) -> dict[str, Explanation]:
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


# Figure 5.11: subscribers leave and others take their places, while a message is published every 500 ms.
#
# The rates are those of Rhea et al., n · ln 2 / t per second for a median session t: the thesis prints the same numbers
# per minute (46 for 4,000 subscribers and a minute), at which no tree would ever be contended. There are 4,096 nodes
# whatever the number of subscribers: the hypercube keeps its dimension, and the thesis compares all packets of 1,000
# subscribers and 4 % with those of 4,000 and 1.1 %, which differ by 40 against 46 only if both are told to as many.
#
# At these rates SRPT's root is beyond saturation and its latency grows for as long as a run lasts; the printed 120
# minutes are not compatible with the printed latencies, 24 seconds are. That duration is fitted.

NODES_WITH_CHURN = 4096
SUBSCRIBERS = (500, 1000, 2000, 4000)
MINUTE = 60_000.0
SLOW, FAST = 69_000.0, 7_000.0
"""Median sessions in ms: 1 and 10 % of a thousand subscribers leave within the time unit of the rates."""
VCUBE_TIME, SRPT_TIME = 4_000.0, 24_000.0
PER_MINUTE = 60.0
"""Times as slow, where the rates are per minute as printed."""
PRINTED_WAIT = 28.36
"""Longest mean wait in a queue at 10 % churn, ms per hop."""
HOP = 102.0
CROWD: Point = {"nodes": 1024, "subscribers": 500, "time": 1_000.0}
CROWDED = 870.0
"""Median session in ms at which a node has four times as much to send: packets wait for a while."""


def run_of_churn(point: Point) -> Figures:
    session = point["session"]
    config = SimConfig(
        protocol=point["system"],
        nodes=point.get("nodes", NODES_WITH_CHURN),
        publishers="1",
        subscribers=str(point["subscribers"]),
        workload="periodic:500",
        window=point["time"],
        churn_session=session and session / log(2),
        seed=point["seed"],
    )
    simulation = prepare(config)
    figures, network = simulation.run(), simulation.world.network
    return {
        "latency": figures["reception_latency"]["mean"],
        "wait": sum(network.waited) / sum(network.queued),
        "false": 100 * figures["false_positives"] / figures["messages_sent"],
    }


def _point(system: str, subscribers: int, session: float | None, time: float, seed: int) -> Point:
    return {"system": system, "subscribers": subscribers, "session": session, "time": time, "seed": seed}


def measure_of_churn(runner: Runner, seed: int, slower: float = 1.0) -> dict[str, Figures]:
    """One run of each setting: its figures are means over hundreds of thousands of receptions."""
    minute, slow, fast = (slower * session for session in (MINUTE, SLOW, FAST))
    points = {"srpt minute": _point("srpt", 4000, minute, SRPT_TIME, seed)}
    for subscribers in reversed(SUBSCRIBERS):
        points[f"minute {subscribers}"] = _point("vcube-ps", subscribers, minute, VCUBE_TIME, seed)
        points[f"static {subscribers}"] = _point("vcube-ps", subscribers, None, VCUBE_TIME, seed)
    points |= {
        "fast": _point("vcube-ps", 1000, fast, VCUBE_TIME, seed),
        "slow": _point("vcube-ps", 1000, slow, VCUBE_TIME, seed),
        "srpt static": _point("srpt", 4000, None, VCUBE_TIME, seed),
    }
    return dict(zip(points, runner(run_of_churn, list(points.values())), strict=True))


def measure_of_crowd(runner: Runner, seed: int) -> dict[str, Figures]:
    """What a wait in all queues does to the latency."""
    points = [{**CROWD, "system": "vcube-ps", "session": session, "seed": seed} for session in (None, CROWDED)]
    return dict(zip(("calm", "crowded"), runner(run_of_churn, points), strict=True))


def findings_of_churn(measured: Mapping[str, Figures]) -> Iterator[Finding]:
    latency = {name: figures["latency"] for name, figures in measured.items()}
    higher = {n: 100 * (latency[f"minute {n}"] / latency[f"static {n}"] - 1) for n in SUBSCRIBERS}
    note = ", ".join(f"{n} subscribers {value:+.1f} %" for n, value in higher.items())
    yield Finding(claim("PS-F511a"), max(higher.values()), note=note)
    note = f"{latency['srpt minute']:.0f} against {latency['srpt static']:.0f} ms after {SRPT_TIME / 1000:g} s"
    yield Finding(claim("PS-F511a-srpt"), latency["srpt minute"] / latency["srpt static"], note=note)
    note = f"{latency['slow']:.0f} → {latency['fast']:.0f} ms"
    yield Finding(claim("PS-F511b"), latency["fast"] / latency["slow"], note=note)
    yield Finding(claim("PS-F511b-fp"), measured["fast"]["false"])


def explanations_of_churn(measured: Mapping[str, Figures], crowd: Mapping[str, Figures]) -> dict[str, Explanation]:
    printed = claim("PS-F511b")
    by_waits = 1 + PRINTED_WAIT / HOP
    growth, wait = crowd["crowded"]["latency"] / crowd["calm"]["latency"], crowd["crowded"]["wait"]
    return {
        printed.name: Explanation(
            "Every change is one more broadcast, which all trees share: at 10 % a node's queue is far from full. Nor "
            "does the printed growth follow from the printed waits: latency grows by what packets wait on each of its "
            f"hops, as where churn is four times as fast, and {PRINTED_WAIT} of {HOP:g} ms make it {by_waits:.2f} "
            "times as large.",
            0.9,
            by_waits,
            [
                Evidence("mean wait of a packet at 10 % churn, ms", measured["fast"]["wait"], 0, PRINTED_WAIT),
                Evidence("mean wait where churn is four times as fast, ms", wait, 3, 100),
                Evidence(
                    "growth there over that by its waits, with which the printed one would be out of reach",
                    growth / (1 + wait / HOP),
                    0.8,
                    printed.value * (1 - printed.tolerance) / by_waits,
                ),
            ],
        )
    }


# Figure 5.12: VCube-PS against trees of 256 brokers with 15 subscribers each; 4,096 nodes, 128 messages.
#
# The text does not say how many publish. Below about 22 nobody waits and both are alike, from there on the root of the
# brokers' tree, which sends 23 packets per message, cannot follow; 26 publishers with five messages each are fitted.
# How long the root falls behind differs from run to run: 9 to 26 % in the first five.

BROKERS_MESSAGES = 128
BROKER_SYSTEMS: dict[str, dict[str, str]] = {"vcube-ps": {}, "srpt-b": {"brokers": "256"}}


def run_of_brokers(point: Point) -> Figures:
    config = SimConfig(
        protocol=point["system"],
        nodes=4096,
        publishers=str(point["publishers"]),
        messages=round(BROKERS_MESSAGES / point["publishers"]),
        workload="poisson:500",
        queued_control=False,
        settings=BROKER_SYSTEMS[point["system"]],
        seed=point["seed"],
    )
    return {"latency": simulate(config)["reception_latency"]["mean"]}


def findings_of_brokers(runner: Runner, seeds: Sequence[int], *, publishers: int) -> Iterator[Finding]:
    points = [{"system": system, "publishers": publishers, "seed": seed} for system in BROKER_SYSTEMS for seed in seeds]
    latencies = [figures["latency"] for figures in runner(run_of_brokers, points)]
    own, brokers = fmean(latencies[: len(seeds)]), fmean(latencies[len(seeds) :])
    note = f"{own:.0f} against {brokers:.0f} u.t., {publishers} publishers"
    yield Finding(claim("PS-F512"), 100 * (1 - own / brokers), note=note)
