"""Table 4.1 and Figure 4.19: processes fail and others come for ten minutes, while a stream flows.

The shares of soft repairs are of all parents that were lost, not of the processes that lost all of theirs: 92.5 and
90.0 % cannot be of two and three orphans of a DAG in ten minutes, but are 37 of 40 and 63 of 70 lost parents; those of
the larger DAGs and of the trees of 128 are whole numbers of lost parents, too.
"""

from collections.abc import Iterator
from typing import Any

from cubecast.experiments.brisa.scene import INTERVAL, SECOND, Scene, mean, quantile
from cubecast.experiments.ledger import Evidence, Explanation, Finding, claim
from cubecast.experiments.parallel import Figures, Point
from cubecast.ids import NodeId
from cubecast.protocol.epidemic.brisa_flow import Flow
from cubecast.protocol.epidemic.brisa_packets import Position

MINUTE = 60 * SECOND
MINUTES = 10
NORMAL = 1.96
"""Standard errors on either side that have 95 %."""
FEWEST, FEWEST_HARD = 20, 5
"""Lost parents whose kinds of repair say something."""


class Watch:
    """What befell the parents of all processes."""

    def __init__(self) -> None:
        self.is_on = False
        self.lost = self.orphans = 0
        self.soft: list[float] = []
        self.hard: list[float] = []
        """How long until there was a parent again, by the kind of repair."""


class WatchedFlow(Flow):
    watch: Watch
    scene: Scene
    _since: float | None = None
    _was_hard = False

    def _lose_parent(self, peer: NodeId) -> None:
        failed = self.watch.is_on and self.scene.world.is_gone(peer)
        super()._lose_parent(peer)
        if failed:
            self.watch.lost += 1
            if not self.parents:
                self.watch.orphans += 1
                self._since, self._was_hard = self.scene.world.now, self.orphan

    def _repair(self) -> None:
        super()._repair()
        self._was_hard = self._was_hard or self.orphan

    def _become_child(self, peer: NodeId, position: Position) -> None:
        super()._become_child(peer, position)
        if self._since is not None:
            (self.watch.hard if self._was_hard else self.watch.soft).append(self.scene.world.now - self._since)
            self._since = None


def watched(watch: Watch) -> Any:
    def attach(scene: Scene, machine: Any) -> None:
        machine.flow_type = type("Flow", (WatchedFlow,), {"watch": watch, "scene": scene})

    return attach


def keep_replacing(scene: Scene, source: NodeId, percent: float, minutes: float) -> float:
    """One fails and one comes, again and again, never the source; when it ends."""
    begin, step = scene.world.now, MINUTE / (percent / 100 * scene.nodes)

    def replace() -> None:
        scene.world.crash(scene.rng.choice([node for node in scene.world.present() if node != source]))
        scene.newcomer()

    end = begin + minutes * MINUTE
    count = int((end - begin) / step)
    for number in range(1, count + 1):
        scene.world.at(begin + number * step, replace)
    return end


def run(point: Point) -> Figures:
    nodes, percent, minutes, watch = point["nodes"], point["percent"], point["minutes"], Watch()
    scene = Scene(
        point["system"],
        nodes,
        seed=point["seed"],
        settings=point["settings"],
        newcomers=int(percent / 100 * nodes * minutes) + 2,
        watch=watched(watch) if point["system"] == "brisa" else None,
    )
    scene.gather()
    source = scene.source() if point["system"] == "brisa" else 0
    scene.run(scene.stream(source, 5) + SECOND)
    first, begin, before = 5, scene.world.now, scene.world.events
    watch.is_on = True
    end = keep_replacing(scene, source, percent, minutes)
    for number in range(int((end - begin) / point["interval"])):
        scene.world.at(begin + number * point["interval"], scene.world.publish, source, "t", [bytes(1024)])
    scene.run(end)
    watch.is_on = False
    scene.run(end + 30 * SECOND)
    if point["system"] == "tag":
        return _of_tag(scene)
    has = {flow.have for flow in scene.flows().values()}
    return {
        "minutes": minutes,
        "lost": watch.lost / minutes,
        "orphans": watch.orphans / minutes,
        "hard_delays": watch.hard,
        "soft_delays": watch.soft,
        "complete": has == {first + int((end - begin) / point["interval"])},
        "events": scene.world.events - before,
    }


def _of_tag(scene: Scene) -> Figures:
    machines: list[Any] = [scene.world.machines[node] for node in scene.world.present()]
    return {"hard_delays": [delay for machine in machines for delay in machine.hard_delays]}


def points(
    sizes: tuple[int, ...], percents: tuple[int, ...], seeds: range, minutes: float, interval: float
) -> list[dict[str, Any]]:
    base = {"system": "brisa", "minutes": minutes}
    return [
        base
        | {"nodes": nodes, "percent": percent, "kind": kind, "seed": seed}
        | {"interval": INTERVAL if nodes == 128 else interval}
        | {"settings": {"view": 4, "expansion": 1, "parents": 1 if kind == "tree" else 2}}
        for nodes in sizes
        for percent in percents
        for kind in ("tree", "DAG")
        for seed in seeds
    ]


def _figures(runs: list[Figures]) -> tuple[float, float]:
    lost, orphans = (mean([one[what] for one in runs]) for what in ("lost", "orphans"))
    return lost, orphans


def _lost(runs: list[Figures]) -> int:
    return sum(round(one["lost"] * one["minutes"]) for one in runs)


def _soft(runs: list[Figures]) -> float:
    """Percent of the lost parents that no hard repair had to make good."""
    return 100 - 100 * sum(len(one["hard_delays"]) for one in runs) / max(1, _lost(runs))


def findings(runs: Any) -> Iterator[Finding]:
    """By (nodes, percent, kind)."""
    for (nodes, percent, kind), its in runs.items():
        lost, orphans = _figures(its)
        row = f"BR-T41-{nodes}-{percent}-{kind}"
        yield Finding(claim(f"{row}-lost"), lost, note=f"orphans {orphans:.2f} per minute")
        if _lost(its) >= FEWEST:
            yield Finding(claim(f"{row}-soft"), _soft(its), note=_repairs(its))
        if kind == "DAG":
            trees = _figures(runs[nodes, percent, "tree"])[1]
            yield Finding(claim(f"{row}-orphans"), trees / max(orphans, 1 / sum(one["minutes"] for one in its)))


def _repairs(runs: list[Figures]) -> str:
    soft, hard = (sum(len(one[f"{kind}_delays"]) for one in runs) for kind in ("soft", "hard"))
    whole = "everybody left has everything" if all(one["complete"] for one in runs) else "somebody lacks messages"
    return f"{_lost(runs)} parents lost; of orphans {soft} had a soft repair and {hard} a hard one; {whole}"


def explanations(runs: Any) -> dict[str, Explanation]:
    """As many parents are lost as failed processes have children: every process has p parents, one in N of all."""
    found = {}
    for (nodes, percent, kind), its in runs.items():
        expected = percent / 100 * nodes * (1 if kind == "tree" else 2)
        text = (
            "A process that fails has as many children as there are parents per process, so X % of N processes per "
            "minute take X % · N · p parents with them; the printed rows for 512 do not grow with the churn, and those "
            "for 128 lie below."
        )
        evidence = [Evidence("parents lost over X % · N · p", _figures(its)[0] / expected, 0.7, 1.3)]
        found[f"BR-T41-{nodes}-{percent}-{kind}-lost"] = Explanation(text, 0.7 * expected, 1.3 * expected, evidence)
        row = f"BR-T41-{nodes}-{percent}-{kind}"
        found[f"{row}-soft"] = _few_repairs(row, _soft(its))
    return found


def _few_repairs(row: str, soft: float) -> Explanation:
    """The printed share rests on so many lost parents."""
    printed = claim(f"{row}-soft").value
    repairs = claim(f"{row}-lost").value * MINUTES
    error = (printed * (100 - printed) / repairs) ** 0.5
    reach = NORMAL * error
    text = f"The printed share rests on {repairs:.0f} lost parents, and ours is among the shares that so few may have."
    evidence = [Evidence("distance in standard errors of the printed share", abs(soft - printed) / error, 0, NORMAL)]
    return Explanation(text, printed - reach, printed + reach, evidence)


def recovery_explained(brisa: list[Figures], tag: list[Figures], interval: float) -> dict[str, Explanation]:
    text = (
        "A process whose neighbours are all below it, or as far, waits for the next message and adopts who brings it. "
        "The printed rules adopt at once, and in circles. TAG here pays a round trip for each connection, no more."
    )
    ours, theirs = ([delay for one in runs for delay in one["hard_delays"]] or [0.0] for runs in (brisa, tag))
    evidence = [
        Evidence("Brisa's median over the interval of messages", quantile(ours, 0.5) / interval, 0, 1.5),
        Evidence("TAG's median in ms", quantile(theirs, 0.5), 1, 100),
    ]
    return {"BR-F419": Explanation(text, 0.01, 1.0, evidence)}


def recovery(brisa: list[Figures], tag: list[Figures]) -> Iterator[Finding]:
    ours, theirs = ([delay for one in runs for delay in one["hard_delays"]] for runs in (brisa, tag))
    if min(len(ours), len(theirs)) >= FEWEST_HARD:
        note = f"Brisa {quantile(ours, 0.5):.1f} ms ({len(ours)}), TAG {quantile(theirs, 0.5):.1f} ms ({len(theirs)})"
        yield Finding(claim("BR-F419"), quantile(theirs, 0.5) / max(0.01, quantile(ours, 0.5)), note=note)
