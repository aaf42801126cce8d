"""Reading a node's log wholesale: ranges of offsets as Arrow record batches."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from cubecast.api import envelope
from cubecast.errors import RemoteProtocolError
from cubecast.net.log import ranges
from cubecast.net.log.ranges import LogPiece
from cubecast.net.port import Port

if TYPE_CHECKING:
    import pyarrow as pa


def log_schema() -> "pa.Schema":
    """Of what `read_log` gives: as it travels, with what was published instead of the envelope around it."""
    import pyarrow as pa  # here, because most applications never need it

    *names, _ = ranges.log_schema()
    return pa.schema([*names, ("payload", pa.binary()), ("headers", pa.map_(pa.string(), pa.string()))])


class LogReading:
    """`async for batch in` it, or `await` its `table()`. The range is fixed when the first piece comes."""

    def __init__(self, port: Port, topic: str, start: int | None, stop: int | None) -> None:
        self._port, self._topic, self._start, self._stop = port, topic, start, stop

    async def __aiter__(self) -> "AsyncIterator[pa.RecordBatch]":
        """Each piece is asked for while the one before it is worked on."""
        piece = await self._port.read_log(self._topic, self._start, self._stop)
        while piece.data:
            following = None
            if piece.following < piece.stop:
                answer = self._port.read_log(self._topic, piece.following, piece.stop)
                following = asyncio.ensure_future(answer)
            try:
                yield _opened(piece)
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


def _opened(piece: LogPiece) -> "pa.RecordBatch":
    """With what was published instead of the envelope around it."""
    import pyarrow as pa

    schema = log_schema()
    with pa.ipc.open_stream(piece.data) as stream:
        batch = stream.read_next_batch()
    sealed, kind = batch.column("sealed").to_pylist(), schema.field("headers").type
    if envelope.are_plain(sealed):
        content = [batch.column("sealed"), pa.nulls(len(sealed), kind)]
    else:
        bodies, headers = zip(*map(_content, sealed), strict=True)
        content = [pa.array(bodies, pa.binary()), pa.array(headers, kind)]
    return pa.record_batch([*batch.columns[:-1], *content], schema=schema)


def _content(sealed: bytes) -> tuple[bytes, list[tuple[str, str]] | None]:
    """A garbled message is kept as it is: reading a log does not end at one."""
    try:
        return envelope.body(sealed), list(envelope.headers(sealed).items()) or None
    except RemoteProtocolError:
        return sealed, None
