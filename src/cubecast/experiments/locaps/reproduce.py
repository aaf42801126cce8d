"""`cubecast reproduce locaps`: hop counts of §4.4.1 and Figures 6.1 to 6.3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from cubecast.experiments.ledger import Claim, Finding, Ledger, claim, claims_of
from cubecast.experiments.locaps.latency import (
    HOP,
    Point,
    leaf,
    on_binary_tree,
    subscription_latencies,
    towards_the_far_leaf,
)
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction

# Figures 6.1 to 6.3: what subscription latency depends on, in LoCaPS, Delta and Gryphon.
#
# The thesis prints curves without numbers, so the claims are shapes; what the rules of each system give at every point
# is stated beside them and must come out exactly, since nothing here is random but who is covered (Figure 6.2a).

Curve = Sequence[float]


@dataclass(frozen=True)
class Figure:
    claim: Claim
    over: str
    x: Sequence[float]
    expected: Mapping[str, Curve]
    ours: Mapping[str, Curve]

    def finding(self) -> Finding:
        """The largest difference at any point; the shape holds if there is none."""
        differences = [
            abs(ours - expected)
            for name, curve in self.expected.items()
            for ours, expected in zip(self.ours[name], curve, strict=True)
        ]
        note = "; ".join(f"{name}: {_list(curve)}" for name, curve in self.ours.items()) + f" at {_list(self.x)}"
        return Finding(self.claim, max(differences), holds=max(differences) < 1e-6, note=note)

    def series(self) -> dict[str, Curve]:
        """The shapes of the paper, which the systems' rules give numbers, beside ours."""
        what = "subscription latency in ms"
        ours = {f"{what}, {name}": list(curve) for name, curve in self.ours.items()}
        return {
            self.over: list(self.x),
            **ours,
            **{f"{what}, {name} by the rules of the paper": list(curve) for name, curve in self.expected.items()},
        }


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def figure_6_1a(runner: Runner, depths: Sequence[int]) -> Figure:
    points = [on_binary_tree("locaps", depth, towards_the_far_leaf(depth, 5), faults=0) for depth in depths]
    points += [on_binary_tree("delta", depth, 0) for depth in depths]
    measured = subscription_latencies(runner, points)
    return Figure(
        claim("LO-F61a"),
        "diameter",
        [2 * depth for depth in depths],
        {"LoCaPS": [10 * HOP for _ in depths], "Delta": [4 * depth * HOP for depth in depths]},
        {"LoCaPS": measured[: len(depths)], "Delta": measured[len(depths) :]},
    )


def figure_6_1b(runner: Runner, depth: int) -> Figure:
    distances = range(1, 2 * depth + 1)
    points = [on_binary_tree("locaps", depth, towards_the_far_leaf(depth, hops), faults=0) for hops in distances]
    measured = subscription_latencies(runner, [*points, on_binary_tree("delta", depth, 0)])
    return Figure(
        claim("LO-F61b"),
        "hops to the publisher",
        list(distances),
        {"LoCaPS": [2 * hops * HOP for hops in distances], "Delta": [4 * depth * HOP for _ in distances]},
        {"LoCaPS": measured[:-1], "Delta": measured[-1:] * len(distances)},
    )


def figure_6_2a(runner: Runner, depth: int, subscribers: int, seed: int) -> Figure:
    """The publisher at the root, f = 1; whether a new subscription is covered is drawn for each subscriber."""
    coverages = (0.0, 0.25, 0.5, 0.75, 1.0)
    points = [on_binary_tree("locaps", depth, 0, faults=1), on_binary_tree("locaps", depth, 0, leaf(depth), faults=1)]
    points += [on_binary_tree("delta", depth, 0), on_binary_tree("gryphon", depth, 0)]
    uncovered, covered, delta, gryphon = subscription_latencies(runner, points)
    rng = Random(f"{seed}/coverage")
    drawn = [sum(rng.random() < coverage for _ in range(subscribers)) / subscribers for coverage in coverages]
    return Figure(
        claim("LO-F62a"),
        "share of covered subscriptions",
        drawn,
        {
            "LoCaPS": [2 * depth * HOP * (1 - share) + 2 * HOP * share for share in drawn],
            "Delta": [4 * depth * HOP for _ in drawn],
            "Gryphon": [2 * depth * HOP for _ in drawn],
        },
        {
            "LoCaPS": [uncovered * (1 - share) + covered * share for share in drawn],
            "Delta": [delta for _ in drawn],
            "Gryphon": [gryphon for _ in drawn],
        },
    )


def figure_6_2b(runner: Runner, depths: Sequence[int]) -> Figure:
    same = [on_binary_tree("locaps", depth, 0, leaf(depth), faults=1) for depth in depths]
    sibling = [on_binary_tree("locaps", depth, 0, leaf(depth) + 1, faults=1) for depth in depths]
    measured = subscription_latencies(runner, [*same, *sibling])
    return Figure(
        claim("LO-F62b"),
        "diameter",
        [2 * depth for depth in depths],
        {"same leaf": [2 * HOP for _ in depths], "sibling leaf": [4 * HOP for _ in depths]},
        {"same leaf": measured[: len(depths)], "sibling leaf": measured[len(depths) :]},
    )


def figure_6_3(runner: Runner, depth: int, most: int) -> Figure:
    faults = range(most + 1)
    points = [on_binary_tree("locaps", depth, 0, leaf(depth), faults=f) for f in faults]
    measured = subscription_latencies(runner, [*points, on_binary_tree("delta", depth, 0)])
    return Figure(
        claim("LO-F63a"),
        "f",
        list(faults),
        {"LoCaPS": [2 * f * HOP for f in faults], "Delta": [4 * depth * HOP for _ in faults]},
        {"LoCaPS": measured[:-1], "Delta": measured[-1:] * len(faults)},
    )


# §4.4.1: the two hop counts the thesis prints, on a line of brokers.

SUBSCRIBER, PUBLISHER = 6, 0
BROKERS = SUBSCRIBER + 1
PIVOT = SUBSCRIBER - 2
"""Where the covering subscription branches off: with the smallest network that has it, at the pivot itself."""


def findings_of_hops(runner: Runner) -> list[Finding]:
    settings = {"tree": "line", "faults": "0"}
    alone = Point("locaps", BROKERS, SUBSCRIBER, PUBLISHER, None, settings)
    covered = Point("locaps", BROKERS, SUBSCRIBER, PUBLISHER, PIVOT, settings)
    hops = [latency / HOP for latency in subscription_latencies(runner, [alone, covered])]
    return [Finding(claim(name), count) for name, count in zip(("LO-HOP-12", "LO-HOP-4"), hops, strict=True)]


# All of them.

DEPTHS, QUICK_DEPTHS = (5, 6, 7, 8, 9), (5, 6)
MOST_FAULTS = 4
DEPTH_OF_FAULTS = 5
"""Figure 6.3 is the same for every depth; with f = 4 a broker's neighbourhood is nine hops wide, which here is all."""
SUBSCRIBERS = 1000


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    depths = QUICK_DEPTHS if effort.quick else DEPTHS
    drawn = [
        figure_6_1a(runner, depths),
        figure_6_1b(runner, depths[-1]),
        figure_6_2a(runner, depths[-1], SUBSCRIBERS, effort.seed),
        figure_6_2b(runner, depths),
        figure_6_3(runner, DEPTH_OF_FAULTS, MOST_FAULTS),
    ]
    return Reproduction(
        name="locaps",
        title="LoCaPS against Delta and Gryphon: thesis of F. Pedrosa, §4.4.1 and chapter 6",
        reading=(
            "50 ms per hop and nothing else; latency is from asking to knowing the cut; a covering subscription is at "
            "the same leaf; 512 brokers with diameter 18 contradict each other, 512 leaves (1,023 brokers) have it"
        ),
        runs=1,
        seed=effort.seed,
        ledger=Ledger([*findings_of_hops(runner), *(figure.finding() for figure in drawn)], claims=claims_of("locaps")),
        series={figure.claim.place: figure.series() for figure in drawn},
    )
