"""A fault schedule: everything that happens in one small world, as data: drawn, printed, shrunk, replayed."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from cubecast.errors import BadInput
from cubecast.ids import NodeId, Topic
from cubecast.sim.faults import Fault, nodes_of, parse_faults

SEVERAL = "+"
"""Between the topics of a message that has several."""


class Action(NamedTuple):
    """What an application asks of its node: publish or crosspost (so many messages), subscribe, unsubscribe, follow or
    unfollow.

    To follow is to subscribe to all topics that begin alike, present and future: `topic` is then such as `n*`. A
    crosspost is on several topics, such as `t+u`.
    """

    at: float
    kind: str
    node: NodeId
    topic: Topic
    messages: int = 1
    size: int = 0
    """Bytes of each message besides its number."""


class Suspicion(NamedTuple):
    """A failure detector is wrong about one peer."""

    at: float
    node: NodeId
    peer: NodeId


@dataclass(frozen=True)
class Schedule:
    protocol: str
    seed: int
    size: int
    """Ids of the cube; those not among `nodes` are holes."""
    nodes: tuple[NodeId, ...]
    members: Mapping[Topic, tuple[NodeId, ...]]
    """Who is subscribed from the start."""
    settings: Mapping[str, str]
    propagation: str
    fifo_links: bool
    actions: tuple[Action, ...]
    faults: tuple[Fault, ...]
    suspicions: tuple[Suspicion, ...]
    reactions: int = 0
    """How many deliveries are answered by a publication."""
    detection_delay: float | None = 300.0
    """Crashes and returns are reported to everybody within it; None: to nobody, by nobody."""
    heal_at: float = 3000.0
    coded: bool = field(default=False)
    epilogue: int = 0
    """How many nodes publish once more on every topic when everything has come to rest."""
    sequence: str = ""
    """The row of events that it was drawn to be, if it was."""

    @property
    def is_static(self) -> bool:
        """Nobody subscribes or unsubscribes while it runs."""
        return all(action.kind in ("publish", "crosspost") for action in self.actions)

    def to_text(self) -> str:
        """One line that `from_text` reads back."""
        data = asdict(self) | {"faults": ",".join(map(str, self.faults))}
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Schedule":
        try:
            data: dict[str, Any] = json.loads(text)
            data["nodes"] = tuple(data["nodes"])
            data["members"] = {topic: tuple(nodes) for topic, nodes in data["members"].items()}
            data["actions"] = tuple(Action(*action) for action in data["actions"])
            data["suspicions"] = tuple(Suspicion(*one) for one in data["suspicions"])
            data["faults"] = parse_faults(data["faults"])
            return cls(**data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadInput(f"this is not a schedule as the swarm prints it: {error}") from None


# Make a failing schedule smaller while it still fails: first faults, then nodes, then what applications do.

T = TypeVar("T")
Fails = Callable[[Schedule], bool]
MOST_RUNS = 400


def shrink(schedule: Schedule, fails: Fails, most_runs: int = MOST_RUNS) -> Schedule:
    """The smallest failing schedule that greedy removal finds within so many runs."""
    runs = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(schedule):
            if runs == most_runs:
                return schedule
            runs += 1
            if fails(smaller):
                schedule, progress = smaller, True
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    for faults in _parts(schedule.faults):
        yield replace(schedule, faults=faults)
    for suspicions in _parts(schedule.suspicions):
        yield replace(schedule, suspicions=suspicions)
    for node in reversed(schedule.nodes):
        if len(schedule.nodes) > 2:
            yield _without(schedule, node)
    for actions in _parts(schedule.actions):
        yield replace(schedule, actions=actions)
    if schedule.reactions:
        yield replace(schedule, reactions=schedule.reactions // 2)
    if len(schedule.members) > 1:
        for topic in schedule.members:
            actions = tuple(one for one in schedule.actions if topic not in one.topic.split(SEVERAL))
            members = {name: nodes for name, nodes in schedule.members.items() if name != topic}
            yield replace(schedule, members=members, actions=actions)
    if schedule.coded:
        yield replace(schedule, coded=False)


def _parts(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Without halves, quarters … single items."""
    size = len(items)
    while size > 1:
        size //= 2
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
    if len(items) == 1:
        yield ()


def _without(schedule: Schedule, node: NodeId) -> Schedule:
    return replace(
        schedule,
        nodes=tuple(one for one in schedule.nodes if one != node),
        members={topic: tuple(one for one in nodes if one != node) for topic, nodes in schedule.members.items()},
        actions=tuple(one for one in schedule.actions if one.node != node),
        suspicions=tuple(one for one in schedule.suspicions if node not in one[1:]),
        faults=tuple(fault for fault in schedule.faults if not nodes_of(fault) >> node & 1),
    )
