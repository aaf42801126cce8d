"""Reading a node's log wholesale: ranges of offsets as Arrow record batches."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from cubecast.api.log_columns import LOG_COLUMNS, as_columns, log_schema
from cubecast.errors import BadInput, DamagedLog, Forgotten
from cubecast.net.port.port import Port
from cubecast.net.port.ranges import ALL, LoggedBatch, LogPiece, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 8 << 20
"""Content that is kept back at most until there are rows enough."""


class LogReading:
    """`async for batch in` it, or `await` its `table()`. The range is fixed when the first piece comes."""

    def __init__(
        self,
        port: Port,
        topic: str,
        start: int | None,
        stop: int | None,
        columns: Sequence[str] | None = None,
        wanted: Wanted = ALL,
        rows: int = 1,
    ) -> None:
        names = LOG_COLUMNS if columns is None else tuple(columns)
        unknown = [name for name in names if name not in LOG_COLUMNS]
        if unknown:
            raise BadInput(f"read_log has no column {unknown[0]!r}; it has {', '.join(LOG_COLUMNS)}")
        self._port, self._topic, self._start, self._stop, self._columns = port, topic, start, stop, names
        self._rows = rows
        self._wanted = wanted._replace(content="payload" in names or "headers" in names)

    async def __aiter__(self) -> "AsyncIterator[pa.RecordBatch]":
        try:  # most of a second, in which a node must not stand
            await asyncio.to_thread(importlib.import_module, "pyarrow.compute")
        except ModuleNotFoundError:
            raise BadInput("read_log gives Arrow, which is not installed: pip install 'cubecast[arrow]'") from None
        gathered: list[LoggedBatch] = []
        rows, size, trouble = 0, 0, None
        pieces = self._pieces()
        while True:
            try:
                piece = await anext(pieces, None)
            except (Forgotten, DamagedLog) as error:  # what came before it is good
                piece, trouble = None, error
            for batch in piece.batches if piece is not None else ():
                gathered.append(batch)
                rows, size = rows + len(batch.sealed), size + sum(map(len, batch.sealed))
            if gathered and (piece is None or rows >= self._rows or size >= MOST_BYTES):
                yield as_columns(self._topic, gathered, self._columns)
                gathered, rows, size = [], 0, 0
            if trouble is not None:
                raise trouble
            if piece is None:
                return

    async def _pieces(self) -> AsyncIterator[LogPiece]:
        """Each is asked for while the one before it is worked on."""
        piece = await self._port.read_log(self._topic, self._start, self._stop, self._wanted)
        while True:
            following = None
            if piece.following < piece.stop:
                answer = self._port.read_log(self._topic, piece.following, piece.stop, self._wanted)
                following = asyncio.ensure_future(answer)
            try:
                yield piece
                if following is None:
                    return
                piece = await following
            finally:
                if following is not None:
                    following.cancel()

    async def table(self) -> "pa.Table":
        """All of it in memory."""
        import pyarrow as pa

        schema = pa.schema([log_schema().field(name) for name in self._columns])
        return pa.Table.from_batches([batch async for batch in self], schema)
