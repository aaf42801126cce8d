"""Faults as data: what goes wrong, where and when. A schedule of them is a tuple that can be printed, shrunk, replayed.

Written on the command line as KIND:WHAT@FROM or KIND:WHAT@FROM-UNTIL, separated by commas:
crash:3@500 · cutoff:3:2@500 (crashes once two more packets are sent) · restart:3@900 ·
pause:2@100-400 · suspect:3@200-600 (everybody holds node 3 faulty, wrongly) ·
partition:0+1+2|3+4@200-600 · oneway:0+1|2@200-600 (left cannot reach right) · loss:5%@0-1000 · duplicate:2%@0-1000 ·
delay:50@100-300 (extra u.t.) · slow:3:40@100-300 (extra u.t. on all that node 3 sends) · reorder:30@0-500
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from random import Random
from typing import TypeAlias

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.vcube.topology import ids_of, mask_of
from cubecast.sim.world import World


@dataclass(frozen=True)
class Crash:
    node: NodeId
    at: float

    def __str__(self) -> str:
        return f"crash:{self.node}@{self.at:g}"


@dataclass(frozen=True)
class Cutoff:
    """Crash in the middle of sending: from `at` on this many packets get out, then the node is gone."""

    node: NodeId
    packets: int
    at: float

    def __str__(self) -> str:
        return f"cutoff:{self.node}:{self.packets}@{self.at:g}"


@dataclass(frozen=True)
class Restart:
    """The crashed node returns as a new incarnation that remembers nothing."""

    node: NodeId
    at: float

    def __str__(self) -> str:
        return f"restart:{self.node}@{self.at:g}"


@dataclass(frozen=True)
class Pause:
    """The process stands still, as with SIGSTOP, and goes on with what arrived meanwhile."""

    node: NodeId
    at: float
    until: float

    def __str__(self) -> str:
        return f"pause:{self.node}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class Suspect:
    """Everybody else's failure detector is wrong about this node for a while."""

    node: NodeId
    at: float
    until: float

    def __str__(self) -> str:
        return f"suspect:{self.node}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class Partition:
    """Packets from `left` to `right` are lost, and back too unless it is one-way. Sets of nodes are masks."""

    left: int
    right: int
    one_way: bool
    at: float
    until: float

    def __str__(self) -> str:
        sides = "|".join("+".join(map(str, ids_of(side))) for side in (self.left, self.right))
        return f"{'oneway' if self.one_way else 'partition'}:{sides}@{self.at:g}-{self.until:g}"


class Trouble(StrEnum):
    LOSS = "loss"
    DUPLICATE = "duplicate"
    DELAY = "delay"
    REORDER = "reorder"


@dataclass(frozen=True)
class LinkTrouble:
    """Every packet is hit with probability `amount` (loss, duplicate) or delayed by it (delay: all, reorder: up to)."""

    kind: Trouble
    amount: float
    at: float
    until: float

    def __str__(self) -> str:
        share = self.kind in (Trouble.LOSS, Trouble.DUPLICATE)
        amount = f"{self.amount * 100:g}%" if share else f"{self.amount:g}"
        return f"{self.kind}:{amount}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class Slow:
    """Everything this node sends takes longer."""

    node: NodeId
    extra: float
    at: float
    until: float

    def __str__(self) -> str:
        return f"slow:{self.node}:{self.extra:g}@{self.at:g}-{self.until:g}"


Fault: TypeAlias = Crash | Cutoff | Restart | Pause | Suspect | Partition | LinkTrouble | Slow


def parse_faults(text: str) -> tuple[Fault, ...]:
    return tuple(_parse(part.strip()) for part in text.split(",") if part.strip())


def _parse(text: str) -> Fault:
    try:
        kind, _, rest = text.partition(":")
        what, _, when = rest.rpartition("@")
        start, _, end = when.partition("-")
        at = _finite(start)
        if kind in ("crash", "restart"):
            if end:
                raise ValueError("takes one time")
            return Crash(_node(what), at) if kind == "crash" else Restart(_node(what), at)
        if kind == "cutoff":
            node, _, packets = what.partition(":")
            return Cutoff(_node(node), int(packets), at)
        until = _finite(end)
        if not at < until:
            raise ValueError("ends before it starts")
        match kind:
            case "pause":
                return Pause(_node(what), at, until)
            case "suspect":
                return Suspect(_node(what), at, until)
            case "slow":
                node, _, extra = what.partition(":")
                return Slow(_node(node), _finite(extra), at, until)
            case "partition" | "oneway":
                left, right = (mask_of(map(_node, side.split("+"))) for side in what.split("|"))
                return Partition(left, right, kind == "oneway", at, until)
            case _:
                return LinkTrouble(Trouble(kind), _amount(Trouble(kind), what), at, until)
    except ValueError:
        raise BadInput(
            f"fault {text!r} is not understood; write for example crash:3@500, pause:2@100-400, "
            "partition:0+1|2+3@200-600 or loss:5%@0-1000"
        ) from None


def _amount(kind: Trouble, text: str) -> float:
    amount = _finite(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if kind in (Trouble.LOSS, Trouble.DUPLICATE) and amount > 1:
        raise ValueError("not a share")
    return amount


def _finite(text: str) -> float:
    number = float(text)
    if not 0 <= number < inf:
        raise ValueError("not a time or amount")
    return number


def _node(text: str) -> NodeId:
    node = int(text)
    if node < 0:
        raise ValueError("not a node")
    return node


def install(faults: Sequence[Fault], world: World, rng: Random, *, detection_delay: float | None = None) -> None:
    """Schedule the faults. With a detection delay, crashes and returns are reported to everybody, up to that late."""
    for fault in faults:
        strangers = _nodes_of(fault) & ~mask_of(world.nodes)
        if strangers:
            raise BadInput(f"fault {fault} names node {next(ids_of(strangers))}, which does not exist")
    links = [fault for fault in faults if isinstance(fault, Partition | LinkTrouble | Slow)]
    cutoffs = [fault for fault in faults if isinstance(fault, Cutoff)]
    if links or cutoffs:
        dying = _Dying(cutoffs, world, rng, detection_delay)

        def fate(now: float, source: NodeId, destination: NodeId) -> list[float]:
            return _fate(links, rng, now, source, destination) if dying.gets_out(now, source) else []

        world.network.fate = fate
    for fault in faults:
        match fault:
            case Crash(node, at):
                world.at(at, world.crash, node)
            case Restart(node, at):
                world.at(at, world.restart, node)
            case Pause(node, at, until):
                world.at(at, world.pause, node)
                world.at(until, world.resume, node)
            case Suspect(node, at, until):
                _report(world, node, at, rng, 1.0, down=True)
                _report(world, node, until, rng, 1.0, down=False)
        if detection_delay is not None and isinstance(fault, Crash | Restart):
            _report(world, fault.node, fault.at, rng, detection_delay, down=isinstance(fault, Crash))


class _Dying:
    """Nodes that crash in the middle of sending."""

    def __init__(self, cutoffs: Sequence[Cutoff], world: World, rng: Random, detection_delay: float | None) -> None:
        self._left = {fault.node: (fault.at, fault.packets) for fault in cutoffs}
        self._world = world
        self._rng = rng
        self._detection_delay = detection_delay

    def gets_out(self, now: float, source: NodeId) -> bool:
        """Does a packet sent now leave its node? The first that does not is the node's end."""
        at, left = self._left.get(source, (float("inf"), 0))
        if now < at:
            return True
        if left < 0 and now > at:  # it came back
            del self._left[source]
            return True
        if left == 0:
            self._left[source] = (now, -1)
            self._world.at(now, self._world.crash, source)
            if self._detection_delay is not None:
                _report(self._world, source, now, self._rng, self._detection_delay, down=True)
        elif left > 0:
            self._left[source] = (at, left - 1)
        return left > 0


def _nodes_of(fault: Fault) -> int:
    match fault:
        case LinkTrouble():
            return 0
        case Partition(left, right):
            return left | right
        case _:
            return 1 << fault.node


def _report(world: World, node: NodeId, at: float, rng: Random, within: float, *, down: bool) -> None:
    tell = world.suspect if down else world.unsuspect
    for other in world.nodes:
        if other != node:
            world.at(at + rng.uniform(0, within), tell, other, node)


def _fate(
    links: Sequence[Partition | LinkTrouble | Slow], rng: Random, now: float, source: NodeId, destination: NodeId
) -> list[float]:
    """Extra delay of every copy that arrives."""
    copies = [0.0]
    for fault in links:
        if not fault.at <= now < fault.until:
            continue
        match fault:
            case Partition(left, right, one_way):
                forth = left >> source & 1 and right >> destination & 1
                back = right >> source & 1 and left >> destination & 1
                if forth or (back and not one_way):
                    return []
            case Slow(node, extra):
                copies = [delay + extra for delay in copies] if node == source else copies
            case LinkTrouble(Trouble.LOSS, share):
                copies = [delay for delay in copies if rng.random() >= share]
            case LinkTrouble(Trouble.DUPLICATE, share):
                copies += [delay + rng.uniform(0, 50) for delay in copies if rng.random() < share]
            case LinkTrouble(Trouble.DELAY, extra):
                copies = [delay + extra for delay in copies]
            case LinkTrouble(Trouble.REORDER, most):
                copies = [delay + rng.uniform(0, most) for delay in copies]
    return copies
