"""Logs to try things on."""

from collections.abc import Sequence
from pathlib import Path

from cubecast.ids import MessageId
from cubecast.log.record import Record
from cubecast.log.store import Store


def batch(source: int, counter: int, count: int, size: int = 0) -> tuple[MessageId, list[bytes]]:
    """Messages that say who they are."""
    texts = [f"m{source}.{counter + i}".encode().ljust(size, b".") for i in range(count)]
    return MessageId(source, 0, counter), texts


async def fill(store: Store, topic: str, batches: int, *, sources: int = 3, count: int = 4, size: int = 0) -> None:
    """Batches of several publishers in turn, all on the disk."""
    for step in range(batches):
        store.append(topic, *batch(step % sources, 1 + count * (step // sources), count, size), float(step))
    await store.synced(store.ticket)


async def everything(store: Store, topic: str, most_bytes: int = 1000) -> list[Record]:
    """From the first offset kept to the last."""
    records: list[Record] = []
    offset = store.bounds(topic)[0]
    while found := await store.read(topic, offset, most_bytes):
        records += found
        offset = found[-1].last + 1
    return records


def payloads(records: Sequence[Record]) -> list[bytes]:
    return [payload for record in records for payload in record.payloads]


def flip(path: Path, position: int, mask: int = 0x10) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ mask]))
