"""What a node gives of its log, as Arrow: made by columns, with nothing done for each row in Python.

Only what an application put around its content is opened message by message, and only where there is something.
"""

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
