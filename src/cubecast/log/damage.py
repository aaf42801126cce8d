"""Which of a peer's records fill a damaged range."""

from collections.abc import Iterator, Sequence

from cubecast.log.record import Damage, Record, Run


def fitting(records: Sequence[Record], damage: Damage, is_meant: bool) -> list[Record]:
    """The records' parts that are the range's messages, at its offsets; nothing unless they fill it exactly.

    Where the range's messages are not known by name the records are taken as they are, if they are meant for it.
    """
    parts = list(_named(records, damage.ids)) if damage.ids else list(records) if is_meant else []
    if sum(len(part.payloads) for part in parts) != damage.last - damage.first + 1:
        return []
    placed, offset = [], damage.first
    for part in parts:
        placed.append(part._replace(offset=offset))
        offset += len(part.payloads)
    return placed


def _named(records: Sequence[Record], runs: Sequence[Run]) -> Iterator[Record]:
    """What of the records the runs name, in the records' order, each message once."""
    missing = {run: set(range(run.first.counter, run.first.counter + run.many)) for run in runs}
    for record in records:
        for run, counters in missing.items():
            if record.first[:2] == run.first[:2]:
                yield from _part(record, counters)


def _part(record: Record, counters: set[int]) -> Iterator[Record]:
    start = record.first.counter
    wanted = [number for number in range(start, start + len(record.payloads)) if number in counters]
    if wanted:
        counters.difference_update(wanted)
        if wanted[-1] - wanted[0] + 1 == len(wanted):
            skipped = wanted[0] - start
            first = record.first._replace(counter=wanted[0])
            yield record._replace(first=first, payloads=record.payloads[skipped : skipped + len(wanted)])
        else:
            for number in wanted:
                yield record._replace(
                    first=record.first._replace(counter=number), payloads=[record.payloads[number - start]]
                )
