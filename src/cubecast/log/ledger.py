"""Segments, index and marks together, as one thing that is written to. Used in the writer's thread only.

Messages are synced in a segment first, then entered into the index, then named in the marks; only then is anybody told.
Whatever of this a crash leaves undone, opening the log does.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cubecast.ids import Topic
from cubecast.log.index import Hole, Index
from cubecast.log.marks import Marks
from cubecast.log.numbered import numbers_in
from cubecast.log.record import Damage, Entry, Record, entry_of
from cubecast.log.segments import Placed, Segments

SYNC_COMMITS = 200
"""Commits after which the index is synced, so that the marks can begin anew."""


class Ledger:
    def __init__(self, index: Index, segments: Segments, marks: Marks) -> None:
        self.index, self.segments = index, segments
        self._marks = marks
        self._commits = 0

    def commit(self, entries: Sequence[Entry], holes: Sequence[Hole] = ()) -> None:
        """All of it is on the disk when this returns; when it raises, nothing of it counts."""
        with self._written(entries) as placed:
            self.index.enter(placed, holes, numbers_in(entries))
        if placed:
            self._marks.add([one[:5] for one in placed])
        self._commits += 1
        if self._commits >= SYNC_COMMITS or self._marks.is_full:
            self.sync()

    def repair(self, topic: Topic, damage: Damage, pieces: Sequence[Record]) -> None:
        """These are the messages of the range; nothing is damaged there any more."""
        # The neighbour's time, because times in a log never fall and a peer's clock is another one.
        at = self.index.time_before(topic, damage.first)
        with self._written([entry_of(piece._replace(at=at)) for piece in pieces]) as placed:
            self.index.replace(topic, damage, placed)

    def move(self, rows: Sequence[tuple[int, Record]]) -> None:
        """Write these rows' messages again at the end, so that the file they are in can go."""
        with self._written([entry_of(record) for _, record in rows]) as placed:
            self.index.move([seq for seq, _ in rows], placed)

    @contextmanager
    def _written(self, entries: Sequence[Entry]) -> Iterator[Sequence[Placed]]:
        """In the segments, if what follows succeeds."""
        if not entries:
            yield []
            return
        try:
            placed = self.segments.write(entries)
            yield placed
        except BaseException:
            self.segments.cut_off()
            raise
        self.segments.keep(placed)

    def sync(self) -> None:
        """The index needs no marks for what it holds itself."""
        if self.index.sync():
            self._marks.begin_anew(self.segments.number, self.segments.end)
        self._commits = 0

    def close(self) -> None:
        try:
            self.sync()
        finally:
            self.index.database.close()
            self.segments.close()
            self._marks.close()
