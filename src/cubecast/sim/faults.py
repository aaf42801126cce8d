"""Faults as data: what goes wrong, where and when. A schedule of them is a tuple that can be printed, shrunk, replayed.

Written on the command line as KIND:WHAT@FROM or KIND:WHAT@FROM-UNTIL, separated by commas:
crash:3@500 · cutoff:3:2@500 (crashes once two more packets are sent) · restart:3@900 ·
pause:2@100-400 · suspect:3@200-600 (everybody holds node 3 faulty, wrongly) ·
break:3:5@500 (the connection between 3 and 5 ends, with what is under way on it; both ends are told) ·
partition:0+1+2|3+4@200-600 · oneway:0+1|2@200-600 (left cannot reach right) · loss:5%@0-1000 · duplicate:2%@0-1000 ·
delay:50@100-300 (extra u.t.) · slow:3:40@100-300 (extra u.t. on all that node 3 sends) · reorder:30@0-500 ·
detour:0+1|2+3:900@100-300 (extra u.t. between two groups) ·
resend:5%@0-1000 (answered or not, it is sent again much later)

Inside a node: half:3@500 (the next time it sends to several, half of them get it, then it crashes) ·
flicker:3:5@500 (node 3 suspects node 5 and takes it back at once) · hold:WaveAck:400@100-900 (packets of this kind are
late) · twosteps:3@100-900 (node 3 learns what others know in two steps) · twice:3@100-900 (its timers fire twice) ·
late:3:400@100-900 (its timers fire late) · jump:3:-500@700 (its clock jumps)
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TypeAlias

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.masks import ids_of, mask_of


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
        kind = "oneway" if self.one_way else "partition"
        return f"{kind}:{_sides(self.left, self.right)}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class Break:
    """The connection between two nodes ends: what is under way is lost, and who keeps it is told at once."""

    node: NodeId
    peer: NodeId
    at: float

    def __str__(self) -> str:
        return f"break:{self.node}:{self.peer}@{self.at:g}"


class Trouble(StrEnum):
    LOSS = "loss"
    DUPLICATE = "duplicate"
    DELAY = "delay"
    REORDER = "reorder"
    RESEND = "resend"


SHARES = (Trouble.LOSS, Trouble.DUPLICATE, Trouble.RESEND)


@dataclass(frozen=True)
class LinkTrouble:
    """A share of the packets is hit, or all are delayed by `amount` (delay) or by up to it (reorder)."""

    kind: Trouble
    amount: float
    at: float
    until: float

    def __str__(self) -> str:
        amount = f"{self.amount * 100:g}%" if self.kind in SHARES else f"{self.amount:g}"
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


@dataclass(frozen=True)
class Detour:
    """Whatever goes from one side to the other, either way, takes longer. Sets of nodes are masks."""

    left: int
    right: int
    extra: float
    at: float
    until: float

    def __str__(self) -> str:
        return f"detour:{_sides(self.left, self.right)}:{self.extra:g}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class Half:
    """The first time from `at` on that it sends one packet to several, half of them get it, and the node is gone."""

    node: NodeId
    at: float

    def __str__(self) -> str:
        return f"half:{self.node}@{self.at:g}"


@dataclass(frozen=True)
class Flicker:
    """A suspicion raised and withdrawn within a round."""

    node: NodeId
    peer: NodeId
    at: float

    def __str__(self) -> str:
        return f"flicker:{self.node}:{self.peer}@{self.at:g}"


@dataclass(frozen=True)
class Hold:
    """Packets of one kind are late: a joiner learns past the next publication who knows it, and the like."""

    packets: str
    extra: float
    at: float
    until: float

    def __str__(self) -> str:
        return f"hold:{self.packets}:{self.extra:g}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class TwoSteps:
    """What others tell this node about the membership is applied in two steps, some time apart."""

    node: NodeId
    at: float
    until: float

    def __str__(self) -> str:
        return f"twosteps:{self.node}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class TimersTwice:
    node: NodeId
    at: float
    until: float

    def __str__(self) -> str:
        return f"twice:{self.node}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class LateTimers:
    node: NodeId
    extra: float
    at: float
    until: float

    def __str__(self) -> str:
        return f"late:{self.node}:{self.extra:g}@{self.at:g}-{self.until:g}"


@dataclass(frozen=True)
class ClockJump:
    """From `at` on the node's clock is ahead by so much, or behind."""

    node: NodeId
    ahead: float
    at: float

    def __str__(self) -> str:
        return f"jump:{self.node}:{self.ahead:g}@{self.at:g}"


Ending: TypeAlias = Crash | Cutoff | Half
OnLinks: TypeAlias = Partition | LinkTrouble | Slow | Detour | Hold
Inside: TypeAlias = Half | TwoSteps | TimersTwice | LateTimers | ClockJump
Fault: TypeAlias = Ending | Restart | Pause | Suspect | Flicker | Break | OnLinks | Inside


def parse_faults(text: str) -> tuple[Fault, ...]:
    return tuple(_parse(part.strip()) for part in text.split(",") if part.strip())


def _parse(text: str) -> Fault:
    try:
        kind, _, rest = text.partition(":")
        what, _, when = rest.rpartition("@")
        start, _, end = when.partition("-")
        at = _finite(start)
        if kind in ("crash", "restart", "cutoff", "half", "flicker", "break", "jump"):
            if end:
                raise ValueError("takes one time")
            return _parse_moment(kind, what, at)
        until = _finite(end)
        if not at < until:
            raise ValueError("ends before it starts")
        return _parse_while(kind, what, at, until)
    except ValueError:
        raise BadInput(
            f"fault {text!r} is not understood; write for example crash:3@500, pause:2@100-400, "
            "partition:0+1|2+3@200-600 or loss:5%@0-1000"
        ) from None


def _parse_moment(kind: str, what: str, at: float) -> Fault:
    name, _, more = what.partition(":")
    node = _node(name)
    match kind:
        case "cutoff":
            return Cutoff(node, int(more), at)
        case "flicker":
            return Flicker(node, _node(more), at)
        case "break":
            return Break(node, _node(more), at)
        case "jump":
            ahead = float(more)
            if not abs(ahead) < inf:
                raise ValueError("not a time")
            return ClockJump(node, ahead, at)
    if more:
        raise ValueError("takes a node")
    match kind:
        case "crash":
            return Crash(node, at)
        case "half":
            return Half(node, at)
        case _:
            return Restart(node, at)


def _parse_while(kind: str, what: str, at: float, until: float) -> Fault:
    name, _, extra = what.partition(":")
    match kind:
        case "pause":
            return Pause(_node(what), at, until)
        case "suspect":
            return Suspect(_node(what), at, until)
        case "twosteps":
            return TwoSteps(_node(what), at, until)
        case "twice":
            return TimersTwice(_node(what), at, until)
        case "slow":
            return Slow(_node(name), _finite(extra), at, until)
        case "late":
            return LateTimers(_node(name), _finite(extra), at, until)
        case "hold":
            if not name.isidentifier():
                raise ValueError("not a kind of packets")
            return Hold(name, _finite(extra), at, until)
        case "partition" | "oneway":
            return Partition(*_parse_sides(what), kind == "oneway", at, until)
        case "detour":
            return Detour(*_parse_sides(name), _finite(extra), at, until)
        case _:
            return LinkTrouble(Trouble(kind), _amount(Trouble(kind), what), at, until)


def _sides(left: int, right: int) -> str:
    return "|".join("+".join(map(str, ids_of(side))) for side in (left, right))


def _parse_sides(text: str) -> tuple[int, int]:
    left, right = (mask_of(map(_node, side.split("+"))) for side in text.split("|"))
    return left, right


def _amount(kind: Trouble, text: str) -> float:
    amount = _finite(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if kind in SHARES and amount > 1:
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


def nodes_of(fault: Fault) -> int:
    """Mask of the nodes it names."""
    match fault:
        case LinkTrouble() | Hold():
            return 0
        case Partition(left, right) | Detour(left, right):
            return left | right
        case Flicker(node, peer) | Break(node, peer):
            return 1 << node | 1 << peer
        case _:
            return 1 << fault.node
