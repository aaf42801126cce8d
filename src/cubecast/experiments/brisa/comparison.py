"""Tables 4.2 and 4.3, Figures 4.10 to 4.12 and 4.16 to 4.18: delays and bandwidth, alone and beside other systems."""

from collections.abc import Iterator
from math import ceil, log
from typing import Any

from cubecast.experiments.brisa.scene import SECOND, Scene, mean, quantile
from cubecast.experiments.ledger import Evidence, Explanation, Finding, claim
from cubecast.experiments.parallel import Figures, Point
from cubecast.protocol.families import find

SYSTEMS = {"SimpleTree": "simple-tree", "Brisa": "brisa", "TAG": "tag", "SimpleGossip": "simple-gossip"}
PULLS = {"SimpleGossip": True, "SimpleTree": False, "TAG": True, "Brisa": False}
STEP = 0.25
"""Milliseconds between two looks at who has found its place."""
PACKET_COST = 0.95
"""Milliseconds of a machine per packet, at which gossip takes as long as printed."""


def disseminate(point: Point) -> Figures:
    """Time between a process's first and last message, mean of all; bytes each got and sent."""
    scene = Scene(
        point["system"],
        point["nodes"],
        seed=point["seed"],
        network=point.get("network", "cluster"),
        settings=point.get("settings"),
        packet_cost=point.get("packet_cost", 0.0),
    )
    trees = point.get("trees", 1)
    topics = ["t"] if trees == 1 else [f"t{number}" for number in range(trees)]
    scene.gather(topics)
    source = scene.source() if point["system"] != "tag" else 0
    ahead = int(point.get("built", False))
    """Messages before anything is measured: the first one floods, and builds the tree."""
    scene.run(scene.stream(source, ahead, size=point["size"]) + 3 * SECOND)
    built = mean(scene.bytes_in)
    scene.forget_traffic()
    each, begin = point["messages"] // trees, scene.world.now
    for topic in topics:
        last = scene.stream(source, each, topic=topic, size=point["size"], start=begin, first=ahead + 1)
    needed = each * trees + ahead
    end = last + 5 * SECOND
    scene.run(end)
    while any(len(one) < needed for one in scene.delivered[: point["nodes"]]) and end < 6 * last + 600 * SECOND:
        end += 5 * SECOND
        scene.run(end)
    times = [list(one.values()) for one in scene.delivered[: point["nodes"]]]
    delays = [when - scene.sent[key] for one in scene.delivered[: point["nodes"]] for key, when in one.items()]
    return {
        "seconds": mean([(max(one) - min(one)) / SECOND for one in times if one]),
        "complete": all(len(one) == needed for one in times),
        "built_bytes": built,
        "in": [quantile(scene.bytes_in, share) for share in (0.5, 0.9)],
        "out": [quantile(scene.bytes_out, share) for share in (0.5, 0.9)],
        "mean_bytes": mean(scene.bytes_in),
        "delays": [quantile(delays, share / 20) for share in range(20)],
    }


def construct(point: Point) -> Figures:
    """How long a process takes to find its place."""
    scene = Scene(point["system"], point["nodes"], seed=point["seed"], network=point["network"])
    scene.gather()
    machines: dict[int, Any] = dict(scene.world.machines)
    if point["system"] == "tag":
        settled = [machines[node].settled_after for node in range(1, point["nodes"])]
    else:
        settled = _deactivations(scene, machines)
    return {"median": quantile(settled, 0.5), "tail": quantile(settled, 0.9), "settled": len(settled)}


def _deactivations(scene: Scene, machines: dict[int, Any]) -> list[float]:
    """From the first link that a process deactivates until all but one are."""
    source = scene.source()
    scene.stream(source, 1)
    begun: dict[int, float] = {}
    done: dict[int, float] = {}
    begin = now = scene.world.now
    while len(done) < len(machines) - 1 and now < begin + SECOND:
        now += max(STEP, (now - begin) / 50)
        scene.run(now)
        for node, machine in machines.items():
            for flow in machine.flows.values() if node != source and node not in done else ():
                if flow.stopped:
                    begun.setdefault(node, now)
                if flow.primary is not None and flow.stopped >= len(machine.overlay.active) - 1:
                    done[node] = now
    return [when - begun.get(node, when) for node, when in done.items()]


def _pushes(nodes: int) -> int:
    """Of one message, by all together: a smaller cluster is as busy when a packet costs as much more."""
    return nodes * ceil(log(nodes))


def points(nodes: int, seeds: range, *, quick: bool) -> dict[str, list[dict[str, Any]]]:
    base = {"nodes": 64 if quick else nodes, "messages": 500, "size": 1024}
    messages = 50
    latency = [base | {"name": name, "system": system, "seed": seeds[0]} for name, system in SYSTEMS.items()]
    cost = PACKET_COST * _pushes(nodes) / _pushes(base["nodes"])
    latency.append(latency[-1] | {"name": "SimpleGossip, busy", "packet_cost": cost})
    few = {"nodes": base["nodes"], "messages": messages, "seed": seeds[0], "built": True}
    sizes = (1, 10) if quick else (1, 10, 50, 100)
    shapes = {"tree": 1, "DAG": 2}
    return {
        "latency": latency,
        "bandwidth": [
            few
            | {"system": "brisa", "size": size << 10, "name": (kind, view, size)}
            | {"settings": {"view": view, "parents": p}}
            for kind, p in shapes.items()
            for view in (4, 8)
            for size in sizes
        ],
        "compared": [
            few | {"system": system, "size": size << 10, "name": (name, size)}
            for name, system in SYSTEMS.items()
            for size in ((0, 10) if quick else (0, 1, 10, 20))
        ],
        "routing": [
            few
            | {"nodes": 150, "network": "planetlab", "size": 1024}
            | {"name": name, "system": system, "settings": settings}
            for name, system, settings in (
                ("first-come", "brisa", {"view": 4}),
                ("delay-aware", "brisa", {"view": 4, "strategy": "delay-aware"}),
                ("flood", "flood", {"view": 4}),
            )
        ],
        "split": [
            base | {"system": "brisa", "seed": seeds[0], "trees": trees, "name": trees, "settings": {"view": 8},
                    "messages": 120 if quick else 480}
            for trees in (1, 2, 4, 8)
        ],
    }  # fmt: skip


def construction_points(nodes: int, seed: int, *, quick: bool) -> list[dict[str, Any]]:
    sizes = {"cluster": 64 if quick else nodes, "planetlab": 64 if quick else 200}
    return [
        {"system": system, "network": network, "nodes": size, "seed": seed}
        for system in ("brisa", "tag")
        for network, size in sizes.items()
    ]


def findings(done: dict[str, dict[Any, Figures]]) -> Iterator[Finding]:
    latency = done["latency"]
    for name in SYSTEMS:
        quiet = latency[name]["seconds"]
        ours = latency["SimpleGossip, busy"]["seconds"] if name == "SimpleGossip" else quiet
        note = f"without a cost per packet {quiet:.1f}" if name == "SimpleGossip" else ""
        yield Finding(claim(f"BR-T43-{name}"), ours, note=note)
    kinds = {name: {one.__name__ for one in find(system).packets if one} for name, system in SYSTEMS.items()}
    as_described = sum(("Pull" in kinds[name]) == pulls for name, pulls in PULLS.items())
    yield Finding(claim("BR-T42"), as_described, note="TAG is printed as pushing; by the text, and here, it pulls")
    yield from _bandwidth(done["bandwidth"], done["compared"])
    routing = {name: one["delays"] for name, one in done["routing"].items()}
    pairs = list(zip(routing["first-come"], routing["delay-aware"], strict=True))
    middle = ", ".join(f"{name} {delays[10]:.0f} ms" for name, delays in routing.items())
    halved = 100 * mean([aware <= first / 2 for first, aware in pairs])
    yield Finding(claim("BR-F410"), halved, note=f"medians: {middle}")
    split = {trees: one["seconds"] for trees, one in done["split"].items()}
    note = ", ".join(f"{trees}: {seconds:.1f} s" for trees, seconds in split.items())
    falls = list(split.values()) == sorted(split.values(), reverse=True)
    yield Finding(claim("BR-F416"), split[8] / split[1], holds=falls, note=note)


def _bandwidth(alone: Any, compared: Any) -> Iterator[Finding]:
    size = max(one[2] for one in alone)
    tree, dag = (alone[kind, 4, size] for kind in ("tree", "DAG"))
    for row, which, place in (("BR-F411", "in", 0), ("BR-F412", "out", 1)):
        notes = [
            f"{kind}, view {view}: {one[which][0] / 1024:.0f} / {one[which][1] / 1024:.0f} KB"
            for (kind, view, kb), one in alone.items()
            if kb == size
        ]
        yield Finding(claim(row), dag[which][place] / max(1.0, tree[which][place]), note="; ".join(notes))
    large = max(one[1] for one in compared)
    bytes_of = {name: compared[name, large]["mean_bytes"] for name in SYSTEMS}
    note = f"{large} KB: " + ", ".join(f"{name} {value / 1024:.0f} KB" for name, value in bytes_of.items())
    ratio = bytes_of["SimpleGossip"] / bytes_of["Brisa"]
    yield Finding(claim("BR-F417"), ratio, holds=ratio > 1, note=note)
    yield Finding(claim("BR-F417-tree"), bytes_of["Brisa"] / bytes_of["SimpleTree"])


def explanations(done: dict[str, dict[Any, Figures]]) -> dict[str, Explanation]:
    routing = {name: one["delays"] for name, one in done["routing"].items()}
    text = (
        "First-come already follows the fastest way: its tree is what a flood's first copies went along. Nothing is "
        "left to halve unless links or load change after the tree has grown."
    )
    first, aware, flooded = (routing[name][10] for name in ("first-come", "delay-aware", "flood"))
    evidence = [
        Evidence("median delay, first-come over flood", first / flooded, 0.9, 1.5),
        Evidence("median delay, delay-aware over first-come", aware / first, 0.5, 1.3),
    ]
    return {"BR-F410": Explanation(text, 0, 40, evidence)}


def construction(runs: dict[tuple[str, str], Figures]) -> Iterator[Finding]:
    ratios = {
        network: runs["tag", network]["median"] / max(STEP, runs["brisa", network]["median"])
        for network in ("cluster", "planetlab")
    }
    note = "; ".join(f"{system} on {network}: {one['median']:.1f} ms" for (system, network), one in runs.items())
    yield Finding(claim("BR-F418"), ratios["planetlab"], note=f"{note}; on the cluster {ratios['cluster']:.2f}")
