"""Journals that begin or end in the middle of a node's life, turned into a trace that can be judged.

A journal that was switched on late begins with what was before it: how many messages the node had published per topic,
and how far its subscriptions were. One that was switched off early says so. Of such a run only what was published while
its publisher's journal was written can be judged; everything else is left out of every log, and counters begin at 1
again. What is left is a subset of what happened, in the order in which it happened: whatever order, gap or duplicate a
checker finds in it is real. What it cannot show: that something of before or after was right, that something arrived at
a node after its journal was switched off (such a log ends in `stop`, which promises nothing more), and whether the
dependencies a publisher claims are exactly the right ones (P13), because some of them may be left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cubecast.ids import Counter, MessageId, NodeId, Topic
from cubecast.trace.event import Event, Inside
from cubecast.trace.schema import Kind

NOT_DECIDABLE = ("P13",)

Life = tuple[NodeId, int]


@dataclass
class Window:
    """The messages of one incarnation that were published while its journal was written: base < counter ≤ end."""

    base: dict[Topic, Counter] = field(default_factory=dict)
    last: dict[Topic, Counter] = field(default_factory=dict)
    is_late: bool = False
    is_off: bool = False

    def holds(self, topic: Topic, counter: Counter) -> bool:
        after = self.is_off and counter > self.last.get(topic, self.base.get(topic, 0))
        return counter > self.base.get(topic, 0) and not after


def windows(node: NodeId, lines: Iterable[list[Any]]) -> dict[Life, Window]:
    """What a node's journals hold, by incarnation."""
    found: dict[Life, Window] = {}
    window = Window()
    for kind, _, *values in lines:
        match kind, values:
            case Kind.START, [incarnation, *_]:
                window = found.setdefault((node, incarnation), Window())
            case "base", [published]:
                window.base, window.is_late = dict(published), True
            case "off", []:
                window.is_off = True
            case Kind.PUBLISH, [topic, first, count, *_]:
                window.last[topic] = first + count - 1
    return found


def is_partial(found: Mapping[Life, Window]) -> bool:
    return any(window.is_late or window.is_off for window in found.values())


class Restriction:
    """Rows as if nothing had ever been but what the windows hold."""

    def __init__(self, found: Mapping[Life, Window]) -> None:
        self._windows = found
        self._left_out: dict[Life, int] = {}
        self.unrecorded: set[Life] = set()
        """Publishers that were heard of and left no journal."""

    def begin_again(self) -> None:
        """The rows will be read once more."""
        self._left_out.clear()

    def rows(self, events: Iterable[Event]) -> Iterator[Event]:
        """Numbered as if those left out had never been; where rows are missing, numbers are."""
        for event in events:
            log, kept = (event.node, event.incarnation), self._kept(event)
            left_out = self._left_out.get(log, 0)
            if kept is None:
                self._left_out[log] = left_out + 1
            else:
                yield kept._replace(seq=event.seq - left_out)

    def _kept(self, event: Event) -> Event | None:
        topic = event.topic
        if event.messages is not None:
            event = event._replace(messages=tuple(self._inside(topic, event.messages)))
        if topic is None:
            return event
        if event.cut is not None:
            event = event._replace(cut=tuple(self._cut(topic, event.cut)))
        if event.deps is not None:
            named = (self._within(topic, one) for one in event.deps)
            event = event._replace(deps=tuple(one for one in named if one is not None))
        if event.source is None or event.source_incarnation is None or event.counter is None:
            return event
        message = self._within(topic, MessageId(event.source, event.source_incarnation, event.counter))
        if message is not None:
            return event._replace(counter=message.counter)
        is_packet = event.kind in (Kind.SEND, Kind.RECEIVE)
        return event._replace(source=None, source_incarnation=None, counter=None) if is_packet else None

    def _inside(self, topic: Topic | None, messages: Iterable[Inside]) -> Iterator[Inside]:
        for one in messages:
            name = one.topic or topic
            kept = None if name is None else self._within(name, MessageId(*one[:3]))
            if kept is not None:
                yield one._replace(counter=kept.counter)

    def _within(self, topic: Topic, message: MessageId) -> MessageId | None:
        window = self._window(message)
        if window is None or not window.holds(topic, message.counter):
            return None
        return message._replace(counter=message.counter - window.base.get(topic, 0))

    def _cut(self, topic: Topic, cut: Iterable[MessageId]) -> Iterator[MessageId]:
        for one in cut:
            window = self._window(one)
            if window is not None:
                base = window.base.get(topic, 0)
                end = window.last.get(topic, base) if window.is_off else one.counter
                yield one._replace(counter=max(0, min(one.counter, end) - base))

    def _window(self, message: MessageId) -> Window | None:
        life = (message.source, message.incarnation)
        window = self._windows.get(life)
        if window is None:
            self.unrecorded.add(life)
        return window
