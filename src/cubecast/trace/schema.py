"""The trace: one schema for everything that runs, version 3. The seam between running and judging.

A run is a directory: `run.json` beside one or more Parquet files. All rows of a node lie in one file, in the order of
their `seq`; a file may hold several nodes. Readers that keep the order of rows inside a file therefore see every node's
local history in order without sorting or shuffling; readers that do not can restore it from (node, incarnation, seq).

Older versions stay readable: a column that came later is null in their rows, and what is decided from it is UNKNOWN.
Where version 3 lists the messages inside a packet, they have a number: the message that the row names and the next ones
of its publisher, as many as that.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Final
from zlib import crc32

SCHEMA_VERSION: Final = 3
OLDEST_VERSION: Final = 1
RUN_FILE: Final = "run.json"
FILE_SUFFIX: Final = ".parquet"


class Kind(StrEnum):
    """What a row says happened."""

    PUBLISH = "publish"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    SEND = "send"
    RECEIVE = "receive"
    DELIVER = "deliver"
    SUBSCRIBE = "subscribe"
    CUT = "cut"
    SUBSCRIBED = "subscribed"
    UNSUBSCRIBE = "unsubscribe"
    UNSUBSCRIBED = "unsubscribed"
    START = "start"  # with `source` and `source_incarnation`: the process of that earlier incarnation goes on
    STOP = "stop"
    CRASH = "crash"
    SUSPECT = "suspect"
    VIEW = "view"
    GAP = "gap"
    DISCARD = "discard"
    QUIESCENT = "quiescent"
    UNDELIVERED = "undelivered"  # the publisher's program is told that `peer` will not get the message


MESSAGE_ID: Final = "struct<source: int64, source_incarnation: int32, counter: int64>"
MESSAGE_IDS: Final = f"list<{MESSAGE_ID}>"
CONTENTS: Final = "list<struct<topic: string, source: int64, source_incarnation: int32, counter: int64>>"
NODE_IDS: Final = "list<int64>"
LISTS: Final = (MESSAGE_IDS, CONTENTS, NODE_IDS)
MOST_COUNTED: Final = 65_536
"""Messages that an older trace's packet is believed to hold: a damaged count must keep no judge busy for ever."""

# (column, type in Arrow's spelling, may it be null)
COLUMNS: Final[tuple[tuple[str, str, bool], ...]] = (
    ("run", "string", False),
    ("node", "int64", False),
    ("incarnation", "int32", False),
    ("seq", "int64", False),  # position in that (node, incarnation)'s history: the only order within a node
    ("time", "double", False),  # u.t. simulated, seconds live; never used to decide order
    ("kind", "string", False),
    ("topic", "string", True),  # null for control packets
    ("source", "int64", True),  # the message this row is about, null when none
    ("source_incarnation", "int32", True),
    ("counter", "int64", True),
    ("deps", MESSAGE_IDS, True),  # on publish: the direct dependencies the publisher claims
    ("peer", "int64", True),  # send and receive: the other end
    ("packet", "int64", True),
    ("messages", CONTENTS, True),  # send and receive: all inside; a topic of its own where the row's is not meant
    ("bytes", "int32", True),
    ("hops", "int32", True),
    ("cut", MESSAGE_IDS, True),  # on cut and subscribed: last excluded counter of those sources
    ("detail", "string", True),
    ("digest", "int64", True),  # on publish and deliver: length of the payload, and its CRC-32, in one number
    ("filter", "string", True),  # on subscribe: only messages whose attributes it matches
    ("attributes", "string", True),  # on publish: what filters look at, a JSON object
    ("peers", NODE_IDS, True),  # on view: the whole view
)
ADDED: Final[dict[str, int]] = {"digest": 2, "filter": 3, "attributes": 3, "peers": 3}
"""Columns that older versions lack: the version that brought each."""
COLUMN_NAMES: Final[tuple[str, ...]] = tuple(name for name, _, _ in COLUMNS)

# What `promises` in run.json may name, in the order reports show them.
WELL_FORMED: Final = ("K0", "K1", "K2", "K3")
PROPERTIES: Final = (
    *("P1", "P1b", "P2", "P3", "P3b", "P4", "P4u", "P5", "P6", "P7", "P8"),
    *("P9a", "P9b", "P9c", "P10", "P11", "P12", "P13", "P14", "P15", "P16"),
)
COUNTS_MESSAGES: Final = 2
"""Up to this version `messages` is a number."""
NEEDS_VERSION: Final[dict[str, int]] = {"P1b": 2}
"""Properties that need a later column: older traces leave them UNKNOWN."""


def lacks(version: int, present: Collection[str]) -> list[str]:
    """The columns that a file of this version should have and does not."""
    return [name for name in COLUMN_NAMES if name not in present and ADDED.get(name, OLDEST_VERSION) <= version]


def is_readable(version: object) -> bool:
    return isinstance(version, int) and not isinstance(version, bool) and OLDEST_VERSION <= version <= SCHEMA_VERSION


def digest_of(payload: bytes) -> int:
    """What the column `digest` says of a payload: cheap, and different for nearly all others."""
    return len(payload) << 32 | crc32(payload)
