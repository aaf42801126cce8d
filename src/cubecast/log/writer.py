"""The thread that writes, and what it writes to: segments, index and marks together, as one thing.

The event loop hands the thread what a turn delivered and never waits for the disk. Whatever has come while the last
commit was under way is the next one. When the disk refuses, nothing is dropped here: the same items are tried again
until there is room.

Messages are synced in a segment first, then entered into the index, then named in the marks; only then is anybody told.
Whatever of this a crash leaves undone, opening the log does.
"""

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

from cubecast.ids import Topic
from cubecast.log.index import Hole, Index, numbers_in
from cubecast.log.marks import Marks
from cubecast.log.pending import Gathered
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


log = logging.getLogger(__name__)

TRY_AGAIN_AFTER = 0.25
"""Seconds after the disk refused."""
MOST_AT_ONCE = 4096
"""Batches of one transaction."""

Task: TypeAlias = Callable[[Ledger], None]


class Writer:
    """`on_committed` hears how much is on the disk, `on_refused` why it is not; both in this thread."""

    def __init__(
        self, ledger: Ledger, on_committed: Callable[[int], None], on_refused: Callable[[Exception], None]
    ) -> None:
        self._ledger, self._on_committed, self._on_refused = ledger, on_committed, on_refused
        self._queue: queue.SimpleQueue[Gathered | Task | None] = queue.SimpleQueue()
        self._waiting: list[Gathered] = []
        self._committed = 0
        self._next_try = 0.0
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="cubecast log", daemon=True)
        self._thread.start()

    def put(self, gathered: Gathered) -> None:
        self._queue.put(gathered)

    def call(self, task: Task) -> None:
        """Something else to be done to the database, after what came before."""
        self._queue.put(task)

    def end(self, patience: float) -> bool:
        """Write what is there and stop; False when that did not come to an end in time."""
        self._queue.put(None)
        self._thread.join(patience)
        return not self._thread.is_alive()

    # In the thread

    @property
    def _many(self) -> int:
        return sum(map(len, self._waiting))

    def _run(self) -> None:
        while not self._ends:
            task = self._collect()
            if self._waiting and (monotonic() >= self._next_try or self._ends):
                self._write()
            if task is not None:
                self._do(task)
        if self._waiting:
            log.error("the log ends without %d batches that the disk did not take", self._many)
        self._close()

    def _collect(self) -> Task | None:
        """Wait for something, then take all there is, up to the first task."""
        patience = max(0.0, self._next_try - monotonic()) if self._waiting else None
        try:
            got = self._queue.get(timeout=patience)
            while isinstance(got, Gathered):
                self._waiting.append(got)
                if self._many >= MOST_AT_ONCE:
                    return None
                got = self._queue.get_nowait()
        except queue.Empty:
            return None
        self._ends = got is None
        return got

    def _write(self) -> None:
        try:
            entries = [entry for gathered in self._waiting for entry in gathered.entries]
            self._ledger.commit(entries, [hole for gathered in self._waiting for hole in gathered.holes])
        except Exception as error:  # whatever it is: a thread that died would be a log that hangs without a word
            if not isinstance(error, sqlite3.Error | OSError):
                log.exception("a mistake in the log")
            self._next_try = monotonic() + TRY_AGAIN_AFTER
            self._on_refused(error)
        else:
            self._committed += self._many
            self._waiting = []
            self._next_try = 0.0
            self._on_committed(self._committed)

    def _do(self, task: Task) -> None:
        try:
            task(self._ledger)
        except (sqlite3.Error, OSError) as error:
            log.error("something the log was asked for could not be done: %s", error)

    def _close(self) -> None:
        try:
            self._ledger.close()
        except (sqlite3.Error, OSError) as error:
            log.error("the log could not be closed in good order: %s", error)
