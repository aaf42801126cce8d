"""Segments, index and marks together, as one thing that is written to. Used in the writer's thread only.

Messages are synced in a segment first, then entered into the index, then named in the marks; only then is anybody told.
Whatever of this a crash leaves undone, opening the log does.
"""

from collections.abc import Sequence

from cubecast.ids import Topic
from cubecast.net.log.index import Hole, Index, Placed
from cubecast.net.log.marks import Marks
from cubecast.net.log.record import Damage, Entry, Mark, Record, pack
from cubecast.net.log.segments import Segments

SYNC_COMMITS = 200
"""Commits after which the index is synced, so that the marks can begin anew."""


class Ledger:
    def __init__(self, index: Index, segments: Segments, marks: Marks) -> None:
        self.index, self.segments = index, segments
        self._marks = marks
        self._commits = 0

    def commit(self, items: Sequence[Entry | Hole]) -> None:
        """All of it is on the disk when this returns; when it raises, nothing of it counts."""
        entries = [item for item in items if isinstance(item, Entry)]
        placed = self._write(entries)
        self.index.enter(placed, [item for item in items if isinstance(item, Hole)])
        self.segments.keep(placed)
        if entries:
            self._marks.add([Mark(*entry[:5]) for entry in entries])
        self._commits += 1
        if self._commits >= SYNC_COMMITS or self._marks.is_full:
            self.sync()

    def repair(self, topic: Topic, damage: Damage, pieces: Sequence[Record]) -> None:
        """These are the messages of the range; nothing is damaged there any more."""
        # The neighbour's time, because times in a log never fall and a peer's clock is another one.
        at = self.index.time_before(topic, damage.first)
        placed = self._write([pack(piece._replace(at=at)) for piece in pieces])
        self.index.replace(topic, damage, placed)
        self.segments.keep(placed)

    def move(self, rows: Sequence[tuple[int, Record]]) -> None:
        """Write these rows' messages again at the end, so that the file they are in can go."""
        placed = self._write([pack(record) for _, record in rows])
        self.index.move([seq for seq, _ in rows], placed)
        self.segments.keep(placed)

    def _write(self, entries: Sequence[Entry]) -> list[Placed]:
        return list(zip(entries, self.segments.write(entries), strict=True)) if entries else []

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
