"""What a reader was told with `.option(…)`, checked before any node is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from cubecast.errors import BadInput
from cubecast.net.patterns import check_pattern, check_topic, matcher

TYPES = {
    "topic": "string",
    "offset": "bigint",
    "time": "timestamp",
    "source": "int",
    "incarnation": "int",
    "counter": "bigint",
    "payload": "binary",
    "headers": "map<string,string>",
    "log": "string",
}
NAMES = (
    *("nodes", "cluster", "topics", "pattern", "since", "columns"),
    *("rowsPerPartition", "maxRowsPerBatch", "pollSeconds"),
)
"""Of all options."""
IGNORED = ("path",)
"""Spark's own."""


@dataclass(frozen=True)
class Options:
    nodes: tuple[str, ...]
    cluster: str
    topics: tuple[str, ...]
    """Empty where there is a pattern."""
    pattern: str
    since: str | int
    columns: tuple[str, ...]
    rows_per_partition: int
    max_rows_per_batch: int | None
    poll_seconds: float

    def selects(self, topic: str) -> bool:
        return topic in self.topics if self.topics else matcher(self.pattern)(topic)

    @property
    def schema(self) -> str:
        return ", ".join(f"{name} {TYPES[name]}" for name in self.columns)


def read_options(given: Mapping[str, str]) -> Options:
    """BadInput in one line that says what to write."""
    known = {name.lower(): name for name in NAMES}
    for name in given:
        if name.lower() not in known and name.lower() not in IGNORED:
            raise BadInput(f"there is no option {name!r} for format cubecast; there are {', '.join(NAMES)}")
    values = {known[name.lower()]: value for name, value in given.items() if name.lower() in known}
    nodes = _words(values.get("nodes", ""))
    if not nodes:
        raise BadInput('say which nodes keep the log: .option("nodes", "HOST:PORT") or several, separated by commas')
    topics, pattern = _words(values.get("topics", "")), values.get("pattern", "")
    if bool(topics) == bool(pattern):
        raise BadInput('say what to read, either .option("topics", "a,b") or .option("pattern", "orders.>")')
    columns = _words(values.get("columns", "")) or tuple(TYPES)
    for column in columns:
        if column not in TYPES:
            raise BadInput(f"columns: there is no column {column!r}; there are {', '.join(TYPES)}")
    rows = values.get("maxRowsPerBatch")
    return Options(
        nodes,
        values.get("cluster", "cubecast"),
        tuple(map(check_topic, topics)),
        check_pattern(pattern) if pattern else "",
        _since(values.get("since", "beginning"), topics),
        columns,
        _count("rowsPerPartition", values.get("rowsPerPartition", "100000")),
        None if rows is None else _count("maxRowsPerBatch", rows),
        _seconds(values.get("pollSeconds", "0.5")),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _since(text: str, topics: tuple[str, ...]) -> str | int:
    if text in ("beginning", "now"):
        return text
    if not text.isdecimal():
        raise BadInput(f"since: write beginning, now, or an offset of one topic; {text!r} is none of them")
    if len(topics) != 1:
        raise BadInput(f"since: offset {text} belongs to one topic; name that one with topics, or write beginning")
    return int(text)


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"{name}: write a number of rows, 1 or more; {text!r} is none")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadInput(f"pollSeconds: write a number of seconds, 0 or more; {text!r} is none")
    return seconds
