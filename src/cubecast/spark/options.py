"""What a reader or a writer was told with `.option(…)`, checked before any node is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cubecast.errors import BadInput
from cubecast.net.links.login import Login
from cubecast.net.port.ranges import matching
from cubecast.net.settings.security import TlsSettings
from cubecast.patterns import check_pattern, check_topic, matcher

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
    "gap": "boolean",
}
SECRETS = {"tlsCa": "tls_ca", "tlsCert": "tls_cert", "tlsKey": "tls_key", "tokenFile": "token_file"}
"""Paths, which Spark may log, of files that it does not."""
CONNECTION = ("nodes", "cluster", *SECRETS, "keyFile", "principal")
READING = (
    *("topics", "pattern", "since", "where", "columns", "failOnDataLoss", "maxDelay"),
    *("rowsPerPartition", "minRowsPerBatch", "maxRowsPerBatch", "pollSeconds"),
)
WRITING = ("producer", "stageLocation", "checkpointLocation", "patience")
IGNORED = ("path",)
"""Spark's own."""


@dataclass(frozen=True)
class Access:
    """Which nodes, and how to prove who asks."""

    nodes: tuple[str, ...]
    cluster: str
    files: tuple[tuple[str, str], ...]
    key_file: str
    principal: str

    def login(self) -> Login:
        """Read where it is used: executors have the files in the same places."""
        files = {name: Path(path) for name, path in self.files}
        token = files.pop("token_file", None)
        tls = TlsSettings(**{name.removeprefix("tls_"): path for name, path in files.items()}) if files else None
        key = Path(self.key_file) if self.key_file else None
        return Login(tls=tls, token_file=token, key_file=key, name=self.principal or None)


@dataclass(frozen=True)
class Options:
    access: Access
    topics: tuple[str, ...]
    """Empty where there is a pattern."""
    pattern: str
    since: str | int | float
    where: str
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    max_delay: float
    rows_per_partition: int
    min_rows_per_batch: int
    max_rows_per_batch: int | None
    poll_seconds: float

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.access.nodes

    def selects(self, topic: str) -> bool:
        return topic in self.topics if self.topics else matcher(self.pattern)(topic)

    @property
    def schema(self) -> str:
        return ", ".join(f"{name} {TYPES[name]}" for name in self.columns)


@dataclass(frozen=True)
class SinkOptions:
    access: Access
    producer: str
    stage: str
    checkpoint: str
    patience: float


def read_options(given: Mapping[str, str]) -> Options:
    """BadInput in one line that says what to write."""
    values = _known(given, READING)
    topics, pattern = _words(values.get("topics", "")), values.get("pattern", "")
    if bool(topics) == bool(pattern):
        raise BadInput('say what to read, either .option("topics", "a,b") or .option("pattern", "orders.>")')
    columns = _words(values.get("columns", "")) or tuple(TYPES)
    for column in columns:
        if column not in TYPES:
            raise BadInput(f"columns: there is no column {column!r}; there are {', '.join(TYPES)}")
    if "where" in values:
        matching(values["where"])
    rows = values.get("maxRowsPerBatch")
    most = None if rows is None else _count("maxRowsPerBatch", rows)
    least = _count("minRowsPerBatch", values.get("minRowsPerBatch", "1"))
    if most is not None and least > most:
        raise BadInput(f"minRowsPerBatch: at most as many as maxRowsPerBatch, {most}; {least} is more")
    return Options(
        _access(values),
        tuple(map(check_topic, topics)),
        check_pattern(pattern) if pattern else "",
        _since(values.get("since", "beginning"), topics),
        values.get("where", ""),
        columns,
        _truth("failOnDataLoss", values.get("failOnDataLoss", "true")),
        _seconds("maxDelay", values.get("maxDelay", "30")),
        _count("rowsPerPartition", values.get("rowsPerPartition", "250000")),
        least,
        most,
        _seconds("pollSeconds", values.get("pollSeconds", "0.5")),
    )


def write_options(given: Mapping[str, str]) -> SinkOptions:
    values = _known(given, WRITING)
    producer = values.get("producer", "")
    if "#" in producer or len(producer) > 200:
        raise BadInput(f"producer: a name of up to 200 letters without #; {producer!r} is none")
    return SinkOptions(
        _access(values),
        producer,
        values.get("stageLocation", ""),
        values.get("checkpointLocation", ""),
        _seconds("patience", values.get("patience", "300")),
    )


def _known(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    known = {name.lower(): name for name in (*CONNECTION, *names)}
    for name in given:
        if name.lower() not in known and name.lower() not in IGNORED:
            raise BadInput(f"format cubecast has no option {name!r} here; it has {', '.join(known.values())}")
    return {known[name.lower()]: value for name, value in given.items() if name.lower() in known}


def _access(values: Mapping[str, str]) -> Access:
    nodes = _words(values.get("nodes", ""))
    if not nodes:
        raise BadInput('say which nodes keep the log: .option("nodes", "HOST:PORT") or several, separated by commas')
    files = tuple((SECRETS[name], values[name]) for name in SECRETS if name in values)
    found = Access(
        nodes, values.get("cluster", "cubecast"), files, values.get("keyFile", ""), values.get("principal", "")
    )
    found.login()
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _since(text: str, topics: tuple[str, ...]) -> str | int | float:
    if text in ("beginning", "now"):
        return text
    if text.isdecimal():
        if len(topics) != 1:
            raise BadInput(f"since: offset {text} belongs to one topic; name that one with topics, or write beginning")
        return int(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise BadInput(
            f"since: write beginning, now, a time (2026-01-31T12:00+00:00), or an offset of one topic; {text!r} is none"
        ) from None


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise BadInput(f"{name}: write true or false; {text!r} is neither")
    return text.lower() == "true"


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"{name}: write a number of rows, 1 or more; {text!r} is none")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadInput(f"{name}: write a number of seconds, 0 or more; {text!r} is none")
    return seconds
