"""Rows of whole nodes as numpy columns, sorted into logs. Whatever the layout was, this restores the local histories.

A log is all rows of one (run, node, incarnation) in the order of `seq`. It is kept up to its first hole and up to its
first unreadable row; what is behind either is treated as if it were not there.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cubecast.pipeline.filters import are_attributes, is_filter
from cubecast.trace.schema import Kind

Ints: TypeAlias = npt.NDArray[Any]
Flags: TypeAlias = npt.NDArray[np.bool_]

KINDS = tuple(Kind)
CODE = {kind: code for code, kind in enumerate(KINDS)}
UNKNOWN_KIND = len(KINDS)

_NOTHING, _TOPIC, _MESSAGE, _CUT, _NEVER = range(5)
_NEEDS_OF = {
    **dict.fromkeys((Kind.PUBLISH, Kind.ACKNOWLEDGED, Kind.FAILED, Kind.DELIVER, Kind.GAP, Kind.UNDELIVERED), _MESSAGE),
    **dict.fromkeys((Kind.SUBSCRIBE, Kind.SUBSCRIBED, Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBED), _TOPIC),
    Kind.CUT: _CUT,
}
NEEDS = np.array([*(_NEEDS_OF.get(kind, _NOTHING) for kind in KINDS), _NEVER], np.int8)
"""What a row of each kind cannot do without; an unknown kind is never readable."""

ENDINGS = (Kind.QUIESCENT, Kind.STOP, Kind.CRASH)
INTEGERS = ("node", "incarnation", "seq", "source", "source_incarnation", "counter")


class Log(NamedTuple):
    """Rows start … stop − 1 of a `Rows` are the kept part of one log; `end` is where its rows really end."""

    run: int
    node: int
    incarnation: int
    start: int
    stop: int
    end: int
    ending: str
    """quiescent, stop, crash, or short."""
    repeated: int | None
    """The first `seq` that two rows share."""
    problem: str | None
    """Why it is short."""

    @property
    def whole(self) -> bool:
        return self.ending != "short"

    @property
    def correct(self) -> bool:
        return self.ending == Kind.QUIESCENT


@dataclass
class Rows:
    """Columns; the rows of a log lie together and in order. Missing integers are 0 and never looked at."""

    run: Ints
    node: Ints
    incarnation: Ints
    seq: Ints
    kind: Ints
    topic: Ints
    source: Ints
    source_incarnation: Ints
    counter: Ints
    filter: Ints
    """Its place in `filters`, −1 where the row tells none."""
    attributes: Ints
    """The same in `texts`."""
    digest: Ints
    """−1 where the row tells none."""
    named: Flags
    """Whether the row names a message: source, source_incarnation and counter are there."""
    goes_on: Flags
    """Whether the row names an earlier incarnation, which on a `start` row says that its process goes on."""
    topics: list[str]
    filters: list[str]
    texts: list[str]
    lists: dict[str, pa.Array]
    homeless: list[int]
    """Runs with rows that lack node, incarnation or seq: those belong to no log."""
    logs: list[Log]

    def list_at(self, column: str, rows: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """The ids in a list column at these rows: lengths, sources, incarnations, counters."""
        values = self.lists.get(column)
        if values is None:
            empty = np.zeros(0, np.int64)
            return np.zeros(len(rows), np.int64), empty, empty, empty
        taken = values.take(pa.array(rows))
        lengths = pc.fill_null(pc.list_value_length(taken), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = taken.flatten()
        parts = (flat.field(name) if len(flat) else pa.array([], pa.int64()) for name in _ID_PARTS)
        source, incarnation, counter = (pc.fill_null(part, 0).to_numpy(zero_copy_only=False) for part in parts)
        return lengths, source, incarnation, counter

    def contents_at(self, rows: Ints) -> tuple[Ints, pa.Array, Ints, Ints, Ints]:
        """The messages inside packets at these rows: the row of each, topics (null: the row's), and their ids.

        What lacks a part of its name tells nothing.
        """
        lengths, source, incarnation, counter = self.list_at("messages", rows)
        if not len(source):
            return rows[:0], pa.nulls(0, pa.string()), source, incarnation, counter
        flat = self.lists["messages"].take(pa.array(rows)).flatten()
        owner, topics, whole = np.repeat(rows, lengths), pc.struct_field(flat, "topic"), None
        for name in _ID_PARTS:
            part = pc.struct_field(flat, name)
            if part.null_count:
                valid = part.is_valid().to_numpy(zero_copy_only=False)
                whole = valid if whole is None else whole & valid
        if whole is not None:
            owner, topics = owner[whole], topics.filter(pa.array(whole))
            source, incarnation, counter = source[whole], incarnation[whole], counter[whole]
        return owner, topics, source, incarnation, counter

    def untold(self, rows: Ints) -> Flags:
        """Which of these rows do not list what is inside their packets."""
        values = self.lists.get("messages")
        if values is None:
            return np.ones(len(rows), bool)
        absent: Flags = values.take(pa.array(rows)).is_null().to_numpy(zero_copy_only=False)
        return absent

    def nameless(self, column: str) -> list[int]:
        """Runs in which an id of a list column is null, or a part of it is."""
        values = self.lists.get(column)
        if values is None:
            return []
        flat = values.flatten()
        parts = [flat, *(flat.field(name) for name in _ID_PARTS)] if len(flat) else []
        if not any(part.null_count for part in parts):
            return []
        bad = reduce(np.logical_or, (part.is_null().to_numpy(zero_copy_only=False) for part in parts))
        runs: list[int] = np.unique(self.run[pc.list_parent_indices(values).to_numpy()[bad]]).tolist()
        return runs


_ID_PARTS = ("source", "source_incarnation", "counter")


def rows_of(table: pa.Table) -> Rows:
    """A table whose `run` column holds run numbers, as columns cut into logs."""
    table = table.unify_dictionaries().combine_chunks()
    placed = _placed(table)
    homeless = []
    if placed is not None:
        homeless = pc.unique(table.filter(pa.array(~placed)).column("run")).to_pylist()
        table = table.filter(pa.array(placed)).combine_chunks()
    columns = {name: _integers(table, name) for name in ("run", *INTEGERS)}
    kind, _ = _codes(table, "kind", CODE)
    topic, topics = _codes(table, "topic", None)
    columns["filter"], filters = _codes(table, "filter", None)
    columns["attributes"], texts = _codes(table, "attributes", None)
    columns["digest"] = _integers(table, "digest", absent=-1)
    columns |= {"kind": kind, "topic": topic, "named": _named(table), "goes_on": _valid(table, "source_incarnation")}
    lists = {name: _chunk(table, name) for name in ("deps", "cut", "messages") if name in table.column_names}
    starts = _log_starts(columns)
    if starts is None:
        order = np.lexsort([columns[name] for name in ("seq", "incarnation", "node", "run")])
        columns = {name: values[order] for name, values in columns.items()}
        lists = {name: values.take(pa.array(order)) for name, values in lists.items()}
        starts = np.flatnonzero(_changes(columns))
    rows = Rows(**columns, topics=topics, filters=filters, texts=texts, lists=lists, homeless=homeless, logs=[])
    rows.logs = _logs(rows, starts)
    return rows


def _chunk(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _valid(table: pa.Table, name: str) -> Flags:
    column = _chunk(table, name)
    if not column.null_count:
        return np.ones(len(column), bool)
    valid: Flags = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid


def _named(table: pa.Table) -> Flags:
    """Which rows name a message. Usually the three columns lack values in the same rows: then one is enough."""
    columns = [_chunk(table, name) for name in ("source", "source_incarnation", "counter")]
    named = _valid(table, "source")
    bitmaps = [column.buffers()[0] if column.null_count and not column.offset else None for column in columns]
    if bitmaps[0] is None or any(bitmap is None or bitmap != bitmaps[0] for bitmap in bitmaps):
        named = named & _valid(table, "source_incarnation") & _valid(table, "counter")
    return named


def _placed(table: pa.Table) -> Flags | None:
    """Which rows have a place in a log, or None when all have."""
    if not any(_chunk(table, name).null_count for name in ("node", "incarnation", "seq")):
        return None
    return _valid(table, "node") & _valid(table, "incarnation") & _valid(table, "seq")


def _integers(table: pa.Table, name: str, absent: int = 0) -> Ints:
    if name not in table.column_names:
        return np.full(table.num_rows, absent, np.int32)
    column = _chunk(table, name)
    if column.null_count:
        column = pc.fill_null(column, absent)
    values: Ints = column.to_numpy()
    return values


def _codes(table: pa.Table, name: str, known: dict[Any, int] | None) -> tuple[Ints, list[str]]:
    """A text column as small integers: the given code of each word, or its place in the returned list; null is last."""
    if name not in table.column_names:
        return np.full(table.num_rows, -1, np.int32), []
    column = _chunk(table, name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    words = column.dictionary.to_pylist()
    null = UNKNOWN_KIND if known else -1
    table_of_codes = np.array([*((known.get(word, null) for word in words) if known else range(len(words))), null])
    places = column.indices
    if places.null_count:
        places = pc.fill_null(places, len(words))
    dtype = np.int8 if known else np.int32
    return table_of_codes.astype(dtype)[places.to_numpy()], words


def _changes(columns: dict[str, Ints]) -> Flags:
    """Where a row belongs to another log than the row before it."""
    change = np.zeros(len(columns["seq"]), bool)
    change[:1] = True
    for name in ("run", "node", "incarnation"):
        values = columns[name]
        change[1:] |= values[1:] != values[:-1]
    return change


def _log_starts(columns: dict[str, Ints]) -> Ints | None:
    """Where the logs start, if each lies in one piece and in order, as our own writer leaves them; else None."""
    change = _changes(columns)
    starts = np.flatnonzero(change)
    names = {tuple(columns[name][start] for name in ("run", "node", "incarnation")) for start in starts.tolist()}
    seq = columns["seq"]
    if len(names) < len(starts) or not ((seq[1:] > seq[:-1]) | change[1:]).all():
        return None
    return starts


def _logs(rows: Rows, starts: Ints) -> list[Log]:
    """Logs by run, node and incarnation, wherever their rows start."""
    ends = np.append(starts[1:], len(rows.seq))[: len(starts)]
    unreadable = _unreadable(rows)
    anything = unreadable.any()
    logs = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        seq = rows.seq[start:end]
        suspect = None
        # Rising from 0 to one less than their number, they miss nothing.
        if seq[0] != 0 or seq[-1] != end - start - 1 or not (seq[1:] > seq[:-1]).all():
            suspect = seq != np.arange(end - start)
        if anything:
            bad = unreadable[start:end]
            suspect = bad if suspect is None else suspect | bad
        logs.append(_log(rows, start, end, suspect, unreadable))
    return sorted(logs)


def _log(rows: Rows, start: int, end: int, suspect: Flags | None, unreadable: Flags) -> Log:
    stop, repeated, problem = end, None, None
    who = f"node {rows.node[start]} incarnation {rows.incarnation[start]}"
    if suspect is not None and suspect.any():
        seq = rows.seq[start:end]
        same = np.flatnonzero(seq[1:] == seq[:-1])
        repeated = int(seq[same[0]]) if len(same) else None
        stop = start + int(np.argmax(suspect))
        what = "unreadable" if unreadable[stop] and rows.seq[stop] == stop - start else "missing"
        problem = f"{who}: row {stop - start} is {what}"
    ending = KINDS[rows.kind[end - 1]].value if stop == end else "short"
    if ending not in ENDINGS:
        problem = problem or f"{who}: the log ends in {ending!r}, neither quiescent nor stopped nor crashed"
        ending = "short"
    place = (int(rows.run[start]), int(rows.node[start]), int(rows.incarnation[start]))
    return Log(*place, start, stop, end, ending, repeated, problem)


def _unreadable(rows: Rows) -> Flags:
    needs = NEEDS[rows.kind]
    lacks_topic = (needs > _NOTHING) & (rows.topic < 0)
    lacks_message = (needs == _MESSAGE) & ~(rows.named & (rows.counter >= 1))
    bad: Flags = lacks_topic | lacks_message | (needs == _NEVER)
    stating = np.flatnonzero(needs == _CUT)
    if len(stating):
        values = rows.lists.get("cut")
        bad[stating] |= values.take(pa.array(stating)).is_null().to_numpy(zero_copy_only=False) if values else True
    for kind, codes, meaningless in (
        (Kind.SUBSCRIBE, rows.filter, [not is_filter(text) for text in rows.filters]),
        (Kind.PUBLISH, rows.attributes, [not are_attributes(text) for text in rows.texts]),
    ):
        if any(meaningless):
            bad |= (rows.kind == CODE[kind]) & np.array([*meaningless, False])[codes]
    return bad
