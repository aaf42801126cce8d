"""A trace row and the header beside it, as plain values."""

from dataclasses import asdict, dataclass, field
from types import NoneType
from typing import Any, Final, NamedTuple

from cubecast.errors import TraceError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.trace.schema import OLDEST_VERSION, PROPERTIES, SCHEMA_VERSION, WELL_FORMED, is_readable


class Inside(NamedTuple):
    """A message inside a packet."""

    source: NodeId
    incarnation: Incarnation
    counter: Counter
    topic: Topic | None = None
    """None: that of the packet's row."""


class Event(NamedTuple):
    """One row, fields in the schema's order; `run` is kept in the header and written into every row.

    A row about several messages does not exist: a batch of three is three `publish` rows and three `deliver` rows, an
    acknowledgement up to a counter is one row per message, a gap of two messages two rows. Only `send` and `receive`
    speak of packets: they list all messages inside, and name the first one where all are of one publisher and topic.
    """

    node: NodeId
    incarnation: Incarnation
    seq: int
    time: float
    kind: str
    topic: Topic | None = None
    source: NodeId | None = None
    source_incarnation: Incarnation | None = None
    counter: Counter | None = None
    deps: tuple[MessageId, ...] | None = None
    peer: NodeId | None = None
    packet: int | None = None
    messages: tuple[Inside, ...] | None = None
    bytes: int | None = None
    hops: int | None = None
    cut: tuple[MessageId, ...] | None = None
    detail: str | None = None
    digest: int | None = None
    filter: str | None = None
    attributes: str | None = None
    peers: tuple[NodeId, ...] | None = None


@dataclass(frozen=True)
class RunInfo:
    """The header of a run: what ran, and what it promises."""

    run: str
    protocol: str
    promises: tuple[str, ...]
    nodes: int | None = None
    """How many nodes wrote rows; a trace with fewer lacks a file and proves nothing."""
    seed: int | None = None
    clock_unit: str = "u.t."
    code_version: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION
    measured: tuple[str, ...] = ()
    """Properties that are likely, not promised: judges say how often they held."""

    def __post_init__(self) -> None:
        unknown = [p for p in self.promises if p not in WELL_FORMED and p not in PROPERTIES]
        if unknown:
            raise TraceError(f"run {self.run!r} promises {unknown}, which this version does not know")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "RunInfo":
        if not isinstance(data, dict):
            raise TraceError("the run header is not a JSON object")
        version = data.get("schema_version")
        if not is_readable(version):
            known = f"{OLDEST_VERSION} to {SCHEMA_VERSION}"
            raise TraceError(f"the trace has schema version {version!r}; this program reads versions {known}")
        for name, kinds in _HEADER_TYPES.items():
            value = data.get(name)
            if not (isinstance(value, kinds) and not isinstance(value, bool)) and (name in _REQUIRED or name in data):
                raise TraceError(f"the run header lacks {name!r} or has another type there: {value!r}")
        # What a later program adds to a header does not change what its rows mean.
        given = {name: data[name] for name in _HEADER_TYPES if data.get(name) is not None}
        return cls(**{**given, "promises": tuple(data["promises"]), "measured": tuple(data.get("measured", ()))})


_HEADER_TYPES: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("run", "protocol"), (str,)),
    **dict.fromkeys(("clock_unit", "code_version"), (str, NoneType)),
    **dict.fromkeys(("nodes", "seed"), (int, NoneType)),
    "promises": (list, tuple),
    "measured": (list, tuple),
    "parameters": (dict, NoneType),
    "schema_version": (int,),
}
_REQUIRED: Final = ("run", "protocol", "promises")
