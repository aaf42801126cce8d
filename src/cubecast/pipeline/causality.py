"""Who could have known what: an order of all publications of a run that respects happened-before, and what follows it.

Publications are numbered log by log in the order of their rows. `previous` is a publication's predecessor in its log
(or topic), `cause[start[m]:start[m + 1]]` are the publications that were delivered to its publisher just before it.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cubecast.pipeline.rows import Ints

CELLS_AT_ONCE = 50_000_000
"""What everybody knows of everybody is a matrix; it is built whole up to this size, and in blocks of it beyond."""
_NO_BLOCK = (0, np.zeros((0, 0), np.int32))


def groups(owner: Ints, size: int) -> Ints:
    """Where the entries of 0 … size − 1 start in a sorted owner column, and where the last ones end."""
    return np.searchsorted(owner, np.arange(size + 1))


def causal_order(base: Ints, start: Ints, cause: Ints, log_of: Ints) -> Ints:
    """An order in which causes come first; publications that wait for one another in a circle are left out.

    Every log is walked until it needs a publication that was not reached yet; it then waits for that one.
    """
    first, last = base[:-1].tolist(), base[1:].tolist()
    place = base[:-1].tolist()
    # Not lists: a message has as many causes as there are topics around it, and each would be an object.
    starts, causes, logs = (np.ascontiguousarray(one).data for one in (start, cause, log_of))
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    order: list[int] = []
    ready = [log for log in range(len(first)) if first[log] < last[log]]
    while ready:
        log = ready.pop()
        at = place[log]
        while at < last[log]:
            missing = next((c for c in causes[starts[at] : starts[at + 1]] if place[logs[c]] <= c), None)
            if missing is not None:
                waiting[missing].append(log)
                break
            order.append(at)
            at += 1
            place[log] = at
            if waiting:
                ready += waiting.pop(at - 1, ())
    return np.array(order, np.int64)


def propagate(known: Ints, order: Ints, previous: Ints, start: Ints, cause: Ints) -> Ints:
    """Every publication learns what its predecessor and its causes know; `known` holds what each says of itself."""
    starts, before = start.tolist(), previous.tolist()
    for message in order.tolist():
        row = known[message]
        if before[message] >= 0:
            np.maximum(row, known[before[message]], out=row)
        low, high = starts[message], starts[message + 1]
        if high - low == 1:
            np.maximum(row, known[cause[low]], out=row)
        elif high > low:
            np.maximum(row, known[cause[low:high]].max(axis=0), out=row)
    return known


@dataclass
class HappenedBefore:
    """Happened-before over all topics of a run, asked only when a cut must be implied or checked for honesty."""

    logs: Ints
    """Packed (node, incarnation) of the logs, ascending."""
    process: Ints
    """Per log, the process it is part of."""
    log_base: Ints
    base: Ints
    """Where the publications of each process begin; those of a log, in `log_base`."""
    publish_seq: Ints
    process_of: Ints
    """Per publication."""
    order: Ints
    start: Ints
    cause: Ints
    _block: tuple[int, Ints] = field(default_factory=lambda: _NO_BLOCK, repr=False)
    """Columns of neighbouring logs, and which the first is."""

    def publishes_after(self, log_key: int, seq: int) -> int | None:
        """The first publication after a row of a log, as its number in the process from 1; None when there is none."""
        log = int(np.searchsorted(self.logs, log_key))
        if log >= len(self.logs) or self.logs[log] != log_key:
            return None
        low, high, process = int(self.log_base[log]), int(self.log_base[log + 1]), int(self.process[log])
        first = low + int(np.searchsorted(self.publish_seq[low:high], seq))
        return first - int(self.base[process]) + 1 if first < self.base[process + 1] else None

    def knows(self, log_key: int, seq: int, publications: Ints) -> Any:
        """Which of these publications have that row of that log before them."""
        first = self.publishes_after(log_key, seq)
        if first is None:
            return np.zeros(len(publications), bool)
        return self._column(int(self.process[np.searchsorted(self.logs, log_key)]))[publications] >= first

    def _column(self, process: int) -> Ints:
        """For each publication, how many of this process's publications happened before it or are it.

        Walking all publications costs the same for one process as for many: as many neighbours as fit come along.
        """
        low, block = self._block
        if not low <= process < low + block.shape[1]:
            together = max(1, CELLS_AT_ONCE // max(1, len(self.process_of)))
            low = process // together * together
            block = self._spread(np.arange(low, min(low + together, len(self.base) - 1)))
            self._block = (low, block)
        return block[:, process - low]

    def _spread(self, processes: Ints) -> Ints:
        size = len(self.process_of)
        number = np.arange(size) - self.base[self.process_of]
        known = np.where(self.process_of[:, None] == processes[None, :], number[:, None] + 1, 0).astype(np.int32)
        previous = np.where(number > 0, np.arange(size) - 1, -1)
        return propagate(known, self.order, previous, self.start, self.cause)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_block": _NO_BLOCK}
