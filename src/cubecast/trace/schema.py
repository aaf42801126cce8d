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
MEANINGS: Final = {
    "K0": "The trace does not contradict itself",
    "K1": "Starting points name only what was published",
    "K2": "Starting points leave no cause behind",
    "K3": "Starting points hide nothing that was owed",
    "P1": "Only what was published is delivered",
    "P1b": "It is delivered with the bytes it was published with",
    "P2": "Nothing is delivered twice",
    "P3": "What was acknowledged reaches every correct subscriber",
    "P3b": "Who publishes hears itself",
    "P4": "What one correct subscriber gets, all get",
    "P4u": "What any subscriber got, even one that crashed, all get",
    "P5": "Each publisher's messages come in order",
    "P6": "Each publisher's messages come without holes",
    "P7": "Causes come before effects",
    "P8": "No effect without all its causes",
    "P9a": "Any two see the same order",
    "P9b": "One order suits everybody",
    "P9c": "Everybody sees the same sequence, without holes",
    "P10": "Exactly once, also across restarts",
    "P11": "Only subscribers are delivered to",
    "P12": "Nothing waits for ever, nothing lost turns up",
    "P13": "Headers claim exactly what happened before",
    "P14": "Nothing is silently lost between processes that live",
    "P15": "What was acknowledged is kept for those who were away",
    "P16": "Publishers are told what was lost",
}
"""In a few words each; docs/verification.md says it exactly."""
WELL_FORMED: Final = tuple(name for name in MEANINGS if name[0] == "K")
PROPERTIES: Final = tuple(name for name in MEANINGS if name[0] == "P")
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
