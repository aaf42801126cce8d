"""Reading a node's log wholesale: ranges of offsets as Arrow record batches."""

import json
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from cubecast.api import envelope
from cubecast.errors import RemoteProtocolError
from cubecast.headers import HeaderValue
from cubecast.net.port.ranges import LoggedBatch

if TYPE_CHECKING:
    import pyarrow as pa
import asyncio
import importlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from cubecast.errors import BadInput, DamagedLog, Forgotten
from cubecast.net.port.port import Port
from cubecast.net.port.ranges import ALL, LogPiece, Wanted

if TYPE_CHECKING:
    import pyarrow as pa


# What a node gives of its log, as Arrow: made by columns, with nothing done for each row in Python.
#
# Only what an application put around its content is opened message by message, and only where there is something.

LOG_COLUMNS = ("topic", "offset", "time", "source", "incarnation", "counter", "payload", "headers")


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


def as_columns(topic: str, batches: Sequence[LoggedBatch], columns: Sequence[str]) -> "pa.RecordBatch":
    """With what was published instead of the envelope around it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = pa.schema([log_schema().field(name) for name in columns])
    ends = list(accumulate(len(batch.sealed) for batch in batches))
    total = ends[-1]
    contents: dict[str, Any] = {}
    if "payload" in columns or "headers" in columns:
        contents = _contents([*chain.from_iterable(batch.sealed for batch in batches)], "headers" in columns)

    def column(name: str) -> Any:
        if name in contents:
            return contents[name]
        if name == "topic":
            return pa.repeat(pa.scalar(topic), total)
        values, kind = [getattr(batch, name) for batch in batches], schema.field(name).type
        if name in ("offset", "counter"):  # each batch counts on from its first one
            begins = [0, *ends[:-1]]
            starts = _spread([value - begin for value, begin in zip(values, begins, strict=True)], ends, kind)
            return pc.add(starts, pa.arange(0, total))
        return _spread(values, ends, kind)

    return pa.record_batch([column(name) for name in columns], schema=schema)


def _spread(values: list[Any], ends: list[int], kind: "pa.DataType") -> "pa.Array":
    """Each value for the rows up to its end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(values) == ends[-1]:
        return pa.array(values, kind)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values, kind))
    return pc.run_end_decode(runs)


def _contents(sealed: list[bytes], with_headers: bool) -> dict[str, Any]:
    import pyarrow as pa

    kind = log_schema().field("headers").type
    if envelope.are_plain(sealed):
        return {"payload": pa.array(sealed, pa.binary()), "headers": pa.nulls(len(sealed), kind)}
    if not with_headers:
        return {"payload": pa.array([_content(one)[0] for one in sealed], pa.binary())}
    bodies, headers = zip(*map(_content, sealed), strict=True)
    return {"payload": pa.array(bodies, pa.binary()), "headers": pa.array(headers, kind)}


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
