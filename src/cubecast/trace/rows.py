"""What a line of a node's history stands for, row by row. The one place where lines become rows of the trace.

A line is (kind, time, values …): one per batch, not per message. `recording.py` says what is written when; a simulated
world unfolds lines as they come, a live node writes them to its journal, and `journal.collect` unfolds them later.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.trace.event import Event, Inside
from cubecast.trace.schema import Kind

RUN, BASE, OFF = "run", "base", "off"
"""Lines that are no rows: the protocol; what was before a journal; that it was switched off."""
LINES: Final = frozenset(map(str, Kind)) | {RUN, BASE, OFF}
_PACKETS: Final = frozenset({Kind.SEND, Kind.RECEIVE})
_ENDS: Final = frozenset({Kind.STOP, Kind.QUIESCENT, Kind.CRASH})


class Unfolding:
    """Numbers the rows of one node's incarnations as its lines are unfolded."""

    def __init__(self, node: NodeId, incarnation: int = 0) -> None:
        self.node = node
        self.incarnation = incarnation
        self.time = 0.0
        self.ended = False
        self._seq: dict[int, int] = {}
        self._acknowledged: dict[tuple[int, Topic], int] = {}
        self._undelivered: set[tuple[Topic, int, int, int]] = set()

    def row(self, kind: str, *columns: Any, **named: Any) -> Event:
        """The next row; `columns` are those from `topic` on."""
        seq = self._seq.get(self.incarnation, 0)
        self._seq[self.incarnation] = seq + 1
        self.ended = kind in _ENDS
        return Event(self.node, self.incarnation, seq, self.time, str(kind), *columns, **named)

    def hole(self) -> None:
        """Something is missing here."""
        self._seq[self.incarnation] = self._seq.get(self.incarnation, 0) + 1

    def unfold(self, kind: str, time: float, values: Sequence[Any]) -> Iterator[Event]:
        """The rows that one line stands for."""
        self.time = time
        if kind in _PACKETS and type(values[1]) in (list, tuple):  # most lines; matching costs more than what is done
            yield self._packet(kind, *values)
            return
        match kind, values:
            case Kind.DELIVER, [topic, source, incarnation, first, count, *told]:
                for counter, digest in enumerate(_digests(told, count), first):
                    yield self.row(kind, topic, source, incarnation, counter, digest=digest)
            case Kind.PUBLISH, [topic, first, count, deps, *told]:
                yield from self._published(topic, first, count, deps, told)
            case Kind.ACKNOWLEDGED, [topic, last]:
                first = self._acknowledged.get((self.incarnation, topic), 0) + 1
                self._acknowledged[self.incarnation, topic] = last
                for message in self._own(first, last):
                    if (topic, *message) not in self._undelivered:  # else its publisher knows better
                        yield self.row(kind, topic, *message)
            case Kind.UNDELIVERED, [topic, messages, peer]:
                for one in messages:
                    self._undelivered.add((topic, *one))
                    yield self.row(kind, topic, *one, peer=peer)
            case Kind.FAILED, [topic, first, count, reason]:
                for message in self._own(first, first + count - 1):
                    yield self.row(kind, topic, *message, detail=reason)
            case Kind.GAP, [topic, missing, reason]:
                # One that names no message, at the end of an incarnation, is told by the rows `stop` and `start`.
                for one in missing:
                    yield self.row(kind, topic, *one, detail=reason)
            case Kind.START, [incarnation, *before]:
                self.incarnation = incarnation
                goes_on = {"source": self.node, "source_incarnation": before[0]} if before else {}
                yield self.row(kind, **goes_on)
            case _:
                yield from self._rare(kind, values)

    def _rare(self, kind: str, values: Sequence[Any]) -> Iterator[Event]:
        match kind, values:
            case (("run" | "base"), _):
                pass  # for those who collect a trace, and for `journal.py`, which restricts it to what can be judged
            case "off", _:
                yield self.row(Kind.STOP)
            case ((Kind.CUT | Kind.SUBSCRIBED), [topic, cut]):
                yield self.row(kind, topic, cut=tuple(MessageId(*one) for one in cut))
            case ((Kind.SEND | Kind.RECEIVE), [peer, topic, message, count, size]):  # of older programs
                batches = [] if message is None else [(topic, *message, count)]
                yield self._packet(kind, peer, batches, size)._replace(topic=topic)
            case Kind.SUBSCRIBE, [topic, wanted]:
                yield self.row(kind, topic, filter=wanted)
            case _, [topic, message, peer, detail, *peers]:
                view = {"peers": tuple(peers[0])} if peers else {}
                yield self.row(Kind(kind), topic, *(message or ()), peer=peer, detail=detail or None, **view)
            case _, [topic]:
                yield self.row(Kind(kind), topic)
            case _:
                yield self.row(Kind(kind))

    def _published(self, topic: Topic, first: int, count: int, deps: Any, told: list[Any]) -> Iterator[Event]:
        known = tuple(MessageId(*one) for one in deps)
        attributes = told[1] if len(told) > 1 else None
        for message, digest in zip(self._own(first, first + count - 1), _digests(told, count), strict=True):
            yield self.row(Kind.PUBLISH, topic, *message, known, digest=digest, attributes=attributes)
            known = (message,)

    def _packet(
        self,
        kind: str,
        peer: NodeId,
        batches: Sequence[tuple[Topic, int, int, int, int]],
        size: int | None,
        packet: int | None = None,
        hops: int | None = None,
    ) -> Event:
        """The first message is named where all are of one batch; topics stand at the messages where they differ."""
        if not batches:
            return self.row(kind, None, None, None, None, None, peer, packet, (), size, hops)
        topic: Topic | None = batches[0][0]
        if len(batches) == 1:
            _, source, incarnation, first, count = batches[0]
            inside = tuple([Inside(source, incarnation, counter) for counter in range(first, first + count)])
            return self.row(kind, topic, source, incarnation, first, None, peer, packet, inside, size, hops)
        if any(batch[0] != topic for batch in batches):
            topic = None
        inside = tuple(
            Inside(source, incarnation, counter, None if topic is not None else name)
            for name, source, incarnation, first, count in batches
            for counter in range(first, first + count)
        )
        return self.row(kind, topic, None, None, None, None, peer, packet, inside, size, hops)

    def _own(self, first: int, last: int) -> Iterator[MessageId]:
        for counter in range(first, last + 1):
            yield MessageId(self.node, self.incarnation, counter)


def _digests(told: list[Any], count: int) -> list[int] | list[None]:
    """The digests of a batch; lines of older programs have none."""
    return told[0] if told and told[0] else [None] * count
