"""Reading a node's log wholesale: ranges of offsets as Arrow record batches."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from cubecast.api import envelope
from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.net.port.headers import HeaderValue
from cubecast.net.port.port import Port
from cubecast.net.port.ranges import ALL, LogPiece, Wanted

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


LOG_COLUMNS = ("topic", "offset", "time", "source", "incarnation", "counter", "payload", "headers")


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
    ) -> None:
        names = LOG_COLUMNS if columns is None else tuple(columns)
        unknown = [name for name in names if name not in LOG_COLUMNS]
        if unknown:
            raise BadInput(f"read_log has no column {unknown[0]!r}; it has {', '.join(LOG_COLUMNS)}")
        self._port, self._topic, self._start, self._stop, self._columns = port, topic, start, stop, names
        self._wanted = wanted._replace(content="payload" in names or "headers" in names)

    async def __aiter__(self) -> "AsyncIterator[pa.RecordBatch]":
        """Each piece is asked for while the one before it is worked on."""
        try:  # most of a second, in which a node must not stand
            await asyncio.to_thread(importlib.import_module, "pyarrow")
        except ModuleNotFoundError:
            raise BadInput("read_log gives Arrow, which is not installed: pip install 'cubecast[arrow]'") from None
        piece = await self._port.read_log(self._topic, self._start, self._stop, self._wanted)
        while True:
            following = None
            if piece.following < piece.stop:
                answer = self._port.read_log(self._topic, piece.following, piece.stop, self._wanted)
                following = asyncio.ensure_future(answer)
            try:
                if piece.batches:
                    yield _opened(self._topic, piece, self._columns)
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


def _opened(topic: str, piece: LogPiece, columns: Sequence[str]) -> "pa.RecordBatch":
    """With what was published instead of the envelope around it. Nothing is made per message that is not asked for."""
    import pyarrow as pa

    batches = piece.batches
    many = [len(batch.sealed) for batch in batches]
    schema = pa.schema([log_schema().field(name) for name in columns])
    payloads, headers = None, None
    if "payload" in columns or "headers" in columns:
        payloads, headers = _contents([one for batch in batches for one in batch.sealed])

    def column(name: str) -> Any:
        match name:
            case "payload":
                return payloads
            case "headers":
                return headers
            case "topic":
                return [topic] * sum(many)
            case "offset" | "counter":
                first = [getattr(batch, name) for batch in batches]
                return [*chain.from_iterable(range(one, one + count) for one, count in zip(first, many, strict=True))]
        return [*chain.from_iterable(map(repeat, [getattr(batch, name) for batch in batches], many))]

    made = {name: column(name) for name in columns}
    arrays = [
        one if isinstance(one, pa.Array) else pa.array(one, schema.field(name).type) for name, one in made.items()
    ]
    return pa.record_batch(arrays, schema=schema)


def _contents(sealed: list[bytes]) -> tuple[Any, Any]:
    import pyarrow as pa

    schema = log_schema()
    if envelope.are_plain(sealed):
        return pa.array(sealed, pa.binary()), pa.nulls(len(sealed), schema.field("headers").type)
    bodies, headers = zip(*map(_content, sealed), strict=True)
    return pa.array(bodies, pa.binary()), pa.array(headers, schema.field("headers").type)


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
