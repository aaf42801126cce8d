"""Delivery in causal order within one subscription: what was delivered, what is held, what is lost."""

from collections import deque
from collections.abc import Callable

from cubecast.ids import Counter, MessageId, Topic
from cubecast.protocol.cubecast.barriers import Barrier
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.copies import Copy
from cubecast.protocol.cubecast.vocabulary import Dependency, Life, Start, mask_from
from cubecast.protocol.effects import Cut, Deliver, Gap, Observe
from cubecast.protocol.order import PendingBuffer

Exists = Callable[[Life, Counter], bool]


class Dropped(Exception):  # noqa: N818 - not an error: a fact about this node
    """A publisher left this member out after having addressed it: it holds this incarnation faulty."""


class _Progress:
    """How far this subscription is with one source."""

    __slots__ = ("cut", "last", "lost", "stated")

    def __init__(self, cut: Counter) -> None:
        self.cut = cut
        self.last = cut
        """Up to here everything is delivered or declared lost."""
        self.lost: Counter = 0
        """The last counter declared lost, 0 when none was."""
        self.stated = False


class Delivery:
    """One subscription. A held publication waits for one missing dependency at a time."""

    def __init__(self, context: Context, topic: Topic, number: int, barrier: Barrier) -> None:
        self._context = context
        self._topic = topic
        self._barrier = barrier
        self._bit = 1 << context.node
        self._progress: dict[Life, _Progress] = {}
        self._pending: PendingBuffer[Life, Copy] = PendingBuffer()
        self._has_lost = False
        """Whether anything of anybody was ever declared lost here."""
        self._held_back: list[Copy] | None = None
        """What came before everything earlier was known."""
        self._foreign: set[Life] = set()
        """Lives of which nothing is for this subscription although they may have addressed it."""
        self._named: dict[Life, Counter] = {}
        """Up to where a life's messages were named as missing."""
        self._is_plain = True
        """None of these three."""
        self.number = number

    # Steps

    def receive(self, copy: Copy) -> None:
        """A publication addressed to this subscription arrived, for the first time here."""
        if self._is_plain or self._is_for_now(copy):
            self._admit(copy)

    def _admit(self, copy: Copy) -> None:
        progress = self._progress.get(copy.source)
        if progress is None or copy.packet.starts:
            progress = self._begin(copy.source, copy.packet.starts)
        if copy.last > progress.last and self._deliver_or_hold(copy, progress) and self._pending.waiting:
            self._examine(self._pending.release(copy.source, copy.last))

    def deliver_own(self, copy: Copy) -> None:
        """The barrier knows of it already."""
        self._deliver(copy, self._begin(copy.source, copy.packet.starts))

    def hold_back(self, foreign: set[Life]) -> None:
        """Keep what comes until `hand_over`. Nothing of these lives (more may come) is for this subscription."""
        self._held_back, self._foreign, self._is_plain = [], foreign, False

    def hand_over(self) -> None:
        """What was kept back may be delivered."""
        held, self._held_back = self._held_back or (), None
        self._is_plain = not self._foreign and not self._named
        for copy in held:
            self.receive(copy)

    def is_named(self, life: Life, last: Counter) -> None:
        """Everything of this life up to there was named as missing and is not delivered any more."""
        self._named[life] = last
        self._is_plain = False
        progress = self._progress.get(life)
        if progress is not None and progress.last < last:
            progress.last = progress.lost = last
            self._has_lost = True
            self._examine(self._pending.release(life, last))

    def _is_for_now(self, copy: Copy) -> bool:
        if copy.source in self._foreign or copy.last <= self._named.get(copy.source, 0):
            for counter in range(copy.first, copy.last + 1):
                message = copy.packet.message._replace(counter=counter)
                self._context.emit(Observe("discard", self._topic, message))
            return False
        if self._held_back is not None:
            self._held_back.append(copy)
            return False
        return True

    def declare_lost(self, exists: Exists) -> None:
        """Everything about the faulty is known: what nobody has will not come, for anybody who waits for it."""
        progressing = True
        while progressing:
            progressing = any(
                self._lose(source, counter, copy, exists)
                for source, counter, copy in self._pending.entries()
                if self._context.registry.is_dead(source)
            )

    def forget_closed(self) -> None:
        """Drop what is kept of faulty sources about which everything is settled."""
        self._progress = {
            source: progress for source, progress in self._progress.items() if not self._context.is_closed(source)
        }
        if not self._is_plain:
            is_closed = self._context.is_closed
            self._foreign.difference_update([life for life in self._foreign if is_closed(life)])
            self._named = {life: last for life, last in self._named.items() if not is_closed(life)}
            self._is_plain = self._held_back is None and not self._foreign and not self._named

    # Looking

    @property
    def holds(self) -> bool:
        return bool(self._pending.waiting or self._held_back)

    def held(self) -> list[tuple[Life, Counter, Copy]]:
        """(source, missing counter, held publication) each."""
        return self._pending.entries()

    def progress(self) -> list[tuple[Life, Counter]]:
        """(source, up to where everything is delivered or declared lost) each."""
        return [(source, self._progress[source].last) for source in sorted(self._progress)]

    def stated(self) -> list[tuple[Life, Counter]]:
        """The same, of sources whose cut was stated."""
        return [(source, last) for source, last in self.progress() if self._progress[source].stated]

    def last_delivered(self, source: Life) -> Counter:
        progress = self._progress.get(source)
        return 0 if progress is None else progress.last

    def depends_on_faulty(self) -> bool:
        """Is anything held that comes from, or waits for, a source held faulty?"""
        dead = self._context.registry.is_dead
        if self._held_back and any(self._may_wait_for_faulty(copy) for copy in self._held_back):
            return True
        return bool(self._pending) and any(dead(source) or dead(copy.source) for source, _, copy in self.held())

    def _may_wait_for_faulty(self, copy: Copy) -> bool:
        lives = (copy.source, *(Life(*dependency[:2]) for dependency in copy.packet.dependencies))
        is_dead, is_closed = self._context.registry.is_dead, self._context.is_closed
        return any(is_dead(life) and not is_closed(life) and life not in self._foreign for life in lives)

    # Inside

    def _begin(self, source: Life, starts: tuple[Start, ...]) -> _Progress:
        """Where this subscription starts with the source, as the source says."""
        start = self._start(starts) if starts else None
        progress = self._progress.get(source)
        if progress is None:
            if start is None:
                raise Dropped
            progress = self._progress[source] = _Progress(start - 1)
            progress.last = max(progress.last, self._named.get(source, 0))
        elif start is not None and start - 1 != progress.cut:
            raise Dropped
        return progress

    def _start(self, starts: tuple[Start, ...]) -> Counter | None:
        for counter, members in starts:
            if mask_from(members) & self._bit:
                return counter
        return None

    def _examine(self, released: list[Copy]) -> None:
        """What was held waits no longer for what it waited for."""
        arrived = deque(released)
        while arrived:
            copy = arrived.popleft()
            if self._deliver_or_hold(copy, self._progress[copy.source]):
                arrived.extend(self._pending.release(copy.source, copy.last))

    def _deliver_or_hold(self, copy: Copy, progress: _Progress) -> bool:
        """True when it was delivered."""
        missing = self._missing(copy, progress.last)
        if missing is not None:
            self._pending.hold(*missing, copy)
            return False
        if copy.last <= progress.last:
            return False
        self._deliver(copy, progress)
        self._barrier.delivered(copy)
        return True

    def _missing(self, copy: Copy, last: Counter) -> tuple[Life, Counter] | None:
        if last < copy.first - 1:
            return copy.source, copy.first - 1
        known = self._progress
        for dependency in copy.packet.dependencies:
            node, incarnation, counter, _, _ = dependency
            progress: _Progress | None
            progress = known.get((node, incarnation))  # type: ignore[call-overload]  # cheaper than making a Life
            if progress is None or progress.last < counter:
                source = Life(node, incarnation)
                if not self._is_excused(source, progress, dependency):
                    return source, counter
        return None

    def _is_excused(self, source: Life, progress: _Progress | None, dependency: Dependency) -> bool:
        if dependency.excused and mask_from(dependency.excused) & self._bit:
            if progress is not None:
                raise Dropped
            return True
        return self._context.is_closed(source) or source in self._foreign

    def _deliver(self, copy: Copy, progress: _Progress) -> None:
        if not progress.stated:
            self._state_cut(copy.source, progress)
        packet = copy.packet
        self._context.effects.append(Deliver(self._topic, packet.message, packet.payloads, packet))
        progress.last = copy.last
        if self._has_lost:
            self._name_lost(copy)

    def _name_lost(self, copy: Copy) -> None:
        for dependency in copy.packet.dependencies:
            other = self._progress.get(Life(dependency.source, dependency.incarnation))
            if other is not None and other.lost == dependency.counter:
                self._barrier.lost(dependency, copy)

    def _state_cut(self, source: Life, progress: _Progress) -> None:
        progress.stated = True
        self._context.emit(Cut(self._topic, MessageId(*source, progress.cut)))

    def _lose(self, source: Life, counter: Counter, dependant: Copy, exists: Exists) -> bool:
        """Declare the next missing publications of a source lost, up to the counter waited for; False if they exist."""
        progress = self._progress.get(source)
        if progress is None:
            start = self._start(_starts_named(dependant, source))
            progress = self._progress[source] = _Progress((start or counter) - 1)
        # A lie about the counter must not cost more than the truth could: only so many are ever named.
        first = max(progress.last, counter - self._context.parameters.most_unstable)
        end = first
        while end < counter and not exists(source, end + 1):
            end += 1
        if end == first:
            return False
        if not progress.stated:
            self._state_cut(source, progress)
        missing = tuple(MessageId(*source, lost) for lost in range(first + 1, end + 1))
        self._context.emit(Gap(self._topic, missing, "lost with the nodes that had it"))
        self._context.report(self._topic, source, first + 1, end)
        progress.last = progress.lost = end
        self._has_lost = True
        self._examine(self._pending.release(source, end))
        return True


def _starts_named(copy: Copy, source: Life) -> tuple[Start, ...]:
    for dependency in copy.packet.dependencies:
        if dependency[:2] == source:
            return dependency.starts
    return ()
