"""Reading a node's log wholesale: ranges of offsets as Arrow record batches."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from cubecast.api import envelope
from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.net.headers import HeaderValue
from cubecast.net.log.ranges import LogPiece
from cubecast.net.port import Port

if TYPE_CHECKING:
    import pyarrow as pa


def log_schema() -> "pa.Schema":
    """Of what `read_log` gives."""
    import pyarrow as pa  # here, because most applications never need it

    return pa.schema(
        [
            ("topic", pa.string()),
            ("offset", pa.int64()),
            ("time", pa.float64()),
            ("source", pa.int32()),
            ("incarnation", pa.int32()),
            ("counter", pa.int64()),
            ("payload", pa.binary()),
            ("headers", pa.map_(pa.string(), pa.string())),
        ]
    )


class LogReading:
    """`async for batch in` it, or `await` its `table()`. The range is fixed when the first piece comes."""

    def __init__(self, port: Port, topic: str, start: int | None, stop: int | None) -> None:
        self._port, self._topic, self._start, self._stop = port, topic, start, stop

    async def __aiter__(self) -> "AsyncIterator[pa.RecordBatch]":
        """Each piece is asked for while the one before it is worked on."""
        try:  # most of a second, in which a node must not stand
            await asyncio.to_thread(importlib.import_module, "pyarrow")
        except ModuleNotFoundError:
            raise BadInput("read_log gives Arrow, which is not installed: pip install 'cubecast[arrow]'") from None
        piece = await self._port.read_log(self._topic, self._start, self._stop)
        while piece.batches:
            following = None
            if piece.following < piece.stop:
                answer = self._port.read_log(self._topic, piece.following, piece.stop)
                following = asyncio.ensure_future(answer)
            try:
                yield _opened(self._topic, piece)
                if following is None:
                    return
                piece = await following
            finally:
                if following is not None:
                    following.cancel()

    async def table(self) -> "pa.Table":
        """All of it in memory."""
        import pyarrow as pa

        return pa.Table.from_batches([batch async for batch in self], log_schema())


def _opened(topic: str, piece: LogPiece) -> "pa.RecordBatch":
    """With what was published instead of the envelope around it."""
    import pyarrow as pa

    offsets: list[int] = []
    times: list[float] = []
    sources: list[int] = []
    incarnations: list[int] = []
    counters: list[int] = []
    sealed: list[bytes] = []
    for batch in piece.batches:
        many = len(batch.sealed)
        offsets += range(batch.offset, batch.offset + many)
        times += [batch.time] * many
        sources += [batch.source] * many
        incarnations += [batch.incarnation] * many
        counters += range(batch.counter, batch.counter + many)
        sealed += batch.sealed
    bodies: Sequence[bytes] = sealed
    headers: Sequence[list[tuple[str, str]] | None] = [None] * len(sealed)
    if not envelope.are_plain(sealed):
        bodies, headers = zip(*map(_content, sealed), strict=True)
    columns = [[topic] * len(sealed), offsets, times, sources, incarnations, counters, bodies, headers]
    schema = log_schema()
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _content(sealed: bytes) -> tuple[bytes, list[tuple[str, str]] | None]:
    """A garbled message is kept as it is: reading a log does not end at one."""
    try:
        headers = [(name, _written(value)) for name, value in envelope.headers(sealed).items()]
        return envelope.body(sealed), headers or None
    except RemoteProtocolError:
        return sealed, None


def _written(value: HeaderValue) -> str:
    """A column of maps has one type: numbers and booleans stand there as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value)
