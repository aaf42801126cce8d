"""Giving the room of forgotten messages back: segments go, oldest first, when nothing in them is kept any more.

A segment that still holds something while most of the log is forgotten is emptied: what is kept of it is written again
at the end. So the files never take much more than twice what they hold.
"""

from cubecast.log.ledger import Ledger
from cubecast.log.record import Broken, Record, decode_frame
from cubecast.log.segments import SEGMENT_BYTES, SegmentReader

STEP_BYTES = 1 << 20


class Cleaner:
    def step(self, ledger: Ledger) -> bool:
        """A bounded piece of work on the oldest file; False when there is nothing to do."""
        segments, database = ledger.segments, ledger.index.database
        oldest = segments.oldest
        if oldest >= segments.number:
            return False
        query = "SELECT seq, file, start, length FROM batches ORDER BY seq LIMIT 1000"
        rows = [row for row in database.execute(query).fetchall() if row[1] == oldest]
        live = sum(account.bytes for account in ledger.index.accounts.values())
        if not rows:
            segments.remove(oldest)
            return True
        return segments.size > 2 * (live + SEGMENT_BYTES) and self._empty(ledger, rows)

    def _empty(self, ledger: Ledger, rows: list[tuple[int, int, int, int]]) -> bool:
        reader = SegmentReader(ledger.segments.directory)
        moved: list[tuple[int, Record]] = []
        size = 0
        try:
            for seq, file, start, length in rows:
                moved.append((seq, decode_frame(reader.read(file, start, length))))
                size += length
                if size >= STEP_BYTES:
                    break
        except Broken:
            # Reading there will tell the reader that asks for it; until it is repaired or forgotten, the file stays.
            if not moved:
                return False
        finally:
            reader.close()
        ledger.move(moved)
        return True
