"""Figures 4.3, 4.7 to 4.9, 4.13 and 4.14: duplicates of a flood, and the shape of the trees that save them."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from cubecast.experiments.brisa.scene import SECOND, Scene, mean, quantile
from cubecast.experiments.ledger import Evidence, Explanation, Finding, claim
from cubecast.experiments.parallel import Figures, Point

FLOODED = 20
SHAPED = 10
TREES = (1, 2, 4, 8)
SHAPES = {
    "tree, view 4": {"view": 4},
    "tree, view 8": {"view": 8},
    "DAG, view 4": {"view": 4, "parents": 2},
    "DAG, view 8": {"view": 8, "parents": 2},
    "printed DAG, view 4": {"view": 4, "parents": 2, "rules": "paper"},
    "printed DAG, view 8": {"view": 8, "parents": 2, "rules": "paper"},
}


def flood(point: Point) -> Figures:
    """Duplicates per message of each process, when everything is flooded."""
    settings = {"view": point["view"], "expansion": point["expansion"]}
    scene = Scene("flood", point["nodes"], seed=point["seed"], settings=settings)
    scene.gather()
    scene.forget_traffic()
    source = scene.source()
    scene.run(scene.stream(source, FLOODED) + SECOND)
    others = [copies / FLOODED - 1 for node, copies in enumerate(scene.copies) if node != source]
    return {"median": quantile(others, 0.5), "most": max(others)}


def shape(point: Point) -> Figures:
    """Depth and children of each process, in one tree or DAG."""
    scene = Scene("brisa", point["nodes"], seed=point["seed"], settings=point["settings"])
    scene.gather()
    scene.run(scene.stream(scene.source(), SHAPED) + 3 * SECOND)
    flows = scene.flows().values()
    depths, children = [flow.depth for flow in flows], [len(flow.children) for flow in flows]
    return {
        "depths": [depths.count(depth) / len(depths) for depth in range(30)],
        "depth": (quantile(depths, 0.5), quantile(depths, 0.9), max(depths)),
        "leaves": (100 * children.count(0) / len(children),),
        "children": (quantile(children, 0.5), quantile(children, 0.9), max(children)),
        "children_share": [children.count(count) / len(children) for count in range(20)],
    }


def several(point: Point) -> Figures:
    """Several trees at once: in how many a process is a leaf, and how many children it has in all."""
    topics = [f"t{number}" for number in range(point["trees"])]
    settings = {"view": 8, "expansion": point["expansion"]}
    scene = Scene("brisa", point["nodes"], seed=point["seed"], network=point["network"], settings=settings)
    scene.gather(topics)
    sources = scene.rng.sample(range(point["nodes"]), len(topics)) if point["sources"] > 1 else [scene.source()]
    begin = scene.world.now
    for place, topic in enumerate(topics):
        start = begin + place * 25.0
        last = scene.stream(sources[place % len(sources)], SHAPED, topic=topic, start=start)
    scene.run(last + 3 * SECOND)
    machines: list[Any] = [scene.world.machines[node] for node in range(point["nodes"])]
    counts = [[len(flow.children) for flow in machine.flows.values()] for machine in machines]
    leaf_in = [sum(not children for children in one) for one in counts]
    delays = [when - scene.sent[key] for node in range(point["nodes"]) for key, when in scene.delivered[node].items()]
    return {
        "leaf_in": [leaf_in.count(number) / len(leaf_in) for number in range(point["trees"] + 1)],
        "idle": 100 * sum(not sum(one) for one in counts) / len(counts),
        "children": (quantile([sum(one) for one in counts], 0.5), max(sum(one) for one in counts)),
        "delay": (quantile(delays, 0.5), quantile(delays, 0.9)),
    }


def points(nodes: int, seeds: range, *, quick: bool) -> dict[str, list[dict[str, Any]]]:
    base = {"nodes": nodes}
    forests = [(trees, network, 2, trees) for network in ("steady", "cluster") for trees in TREES]
    forests += [(1, "steady", 1, 1), (8, "steady", 2, 1)]
    if quick:
        forests = [(1, "steady", 2, 1), (2, "steady", 2, 2), (8, "steady", 2, 8)]
    shapes = list(islice(SHAPES.items(), 2 if quick else len(SHAPES)))
    floods = ((4, 1.0), (10, 1.0)) if quick else ((4, 1.0), (10, 1.0), (4, 2.0), (10, 2.0))
    return {
        "flood": [base | {"view": view, "expansion": wide, "seed": seed} for view, wide in floods for seed in seeds],
        "shape": [base | {"name": name, "settings": one, "seed": seed} for name, one in shapes for seed in seeds],
        "several": [
            base | {"trees": trees, "network": network, "expansion": wide, "sources": sources, "seed": seed}
            for trees, network, wide, sources in forests
            for seed in seeds
        ],
    }


def findings(floods: Any, shapes: Any, forests: Any) -> Iterator[Finding]:
    """Each a mapping of settings to the figures of its runs."""
    for view in (4, 10):
        wide = floods.get((view, 2.0), ())
        note = f"expansion 2: {mean([run['median'] for run in wide]):.1f}" if wide else ""
        yield Finding(claim(f"BR-F43-{view}"), mean([run["median"] for run in floods[view, 1.0]]), note=note)
    depth, leaves, most = (
        {name: mean([run[what][place] for run in runs]) for name, runs in shapes.items()}
        for what, place in (("depth", 0), ("leaves", 0), ("children", 2))
    )
    tails = {name: mean([run["depth"][1] for run in runs]) for name, runs in shapes.items()}
    note = "; ".join(f"{name}: {depth[name]:.1f}, 90 % {tails[name]:.1f}" for name in shapes)
    ratio = depth["tree, view 8"] / depth["tree, view 4"]
    yield Finding(claim("BR-F47"), ratio, holds=ratio < 1, note=note)
    gained = leaves["tree, view 8"] - leaves["tree, view 4"]
    note = "; ".join(f"{name}: leaves {leaves[name]:.0f} %, most children {most[name]:.0f}" for name in shapes)
    yield Finding(claim("BR-F48"), gained, holds=gained > 0, note=note)
    if "DAG, view 4" in shapes:
        ratio = depth["printed DAG, view 4"] / depth["tree, view 4"]
        yield Finding(claim("BR-F47-DAG"), ratio, holds=ratio > 1, note="by the printed rule; ours go by paths")
        fewer = leaves["tree, view 4"] - leaves["DAG, view 4"]
        yield Finding(claim("BR-F48-DAG"), fewer, holds=fewer > 0)
    yield from _forests(forests)


def _leaves(runs: Sequence[Figures], least: int) -> float:
    """Share of the processes that are leaves in so many trees or more, in percent."""
    return 100 * mean([sum(run["leaf_in"][least:]) for run in runs])


def _forests(forests: Any) -> Iterator[Finding]:
    yield Finding(claim("BR-F413-2"), 100 * mean([run["leaf_in"][1] for run in forests[2, "steady", 2, 2]]))
    alone = forests.get((8, "steady", 2, 1), ())
    note = f"; with one source {_leaves(alone, 7):.1f} %" if alone else ""
    yield Finding(claim("BR-F413"), _leaves(forests[8, "steady", 2, 8], 7), note=f"eight sources{note}")
    idle = {key: mean([run["idle"] for run in runs]) for key, runs in forests.items()}
    note = ", ".join(
        f"{network}, {trees} trees of {sources}, expansion {wide}: {value:.0f} %"
        for (trees, network, wide, sources), value in idle.items()
    )
    yield Finding(claim("BR-F414-1"), idle[1, "steady", 2, 1], note=note)
    yield Finding(claim("BR-F414-8"), idle[8, "steady", 2, 8], note="eight sources")
    if (1, "cluster", 2, 1) in forests:
        delays = [mean([run["delay"][0] for run in forests[trees, "cluster", 2, trees]]) for trees in TREES]
        note = ", ".join(f"{trees}: {delay:.1f} ms" for trees, delay in zip(TREES, delays, strict=True))
        yield Finding(claim("BR-F415"), delays[-1] / delays[0], note=note)


def explanations(forests: Any) -> dict[str, Explanation]:
    """Eight trees that each have that many leaves cannot leave so few processes without work."""
    share = mean([run["idle"] for run in forests[1, "steady", 2, 1]]) / 100
    independent = 100 * (share**8 + 8 * share**7 * (1 - share))
    text = (
        "Figures 4.13 and 4.14 contradict each other: where a tree leaves so many processes without children, trees "
        "drawn independently of each other would have more in seven of eight."
    )
    evidence = [
        Evidence("% without children in one tree", 100 * share, 70, 90),
        Evidence("% that are leaves in seven of eight independent trees", independent, 20, 90),
    ]
    return {"BR-F413": Explanation(text, 5, 40, evidence)}


def series(shapes: Any) -> dict[str, Any]:
    def average(runs: Sequence[Figures], what: str) -> list[float]:
        return [mean(values) for values in zip(*(run[what] for run in runs), strict=True)]

    return {
        "Figure 4.7": {"nodes": list(range(30))}
        | {f"share, {n}": average(runs, "depths") for n, runs in shapes.items()},
        "Figure 4.8": {"nodes": list(range(20))}
        | {f"share, {n}": average(runs, "children_share") for n, runs in shapes.items()},
    }
