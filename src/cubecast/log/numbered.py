"""What producers that number their messages have in a log: the last number of each, on each topic.

A number travels in a header of its message. The log's writer looks for them in what it writes, so that the numbers are
in the index when the messages are durable, and any node's log can tell a producer what it need not publish again.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from cubecast.errors import DamagedLog
from cubecast.headers import attributes_of
from cubecast.ids import Topic
from cubecast.log.record import Entry, messages_in, row_checksum

HEADER: Final = "cubecast-producer"
"""Holds the producer's name, a number sign, and the message's number on its topic, from 1."""
_MARK: Final = bytes([0xA0 | len(HEADER)]) + HEADER.encode()
"""How the header looks in a packed message: blocks without it, nearly all, are searched and not opened."""
_ENTER: Final = (
    "INSERT INTO producers VALUES (?, ?, ?, ?) ON CONFLICT (name, topic) DO UPDATE SET number=excluded.number, "
    "checksum=excluded.checksum WHERE excluded.number > number"
)
Numbers: TypeAlias = dict[tuple[str, Topic], int]
"""The last number by producer and topic."""


def stamp(name: str, number: int) -> str:
    return f"{name}#{number}"


def numbers_in(entries: Iterable[Entry]) -> Numbers:
    found: Numbers = {}
    for entry in entries:
        if _MARK in entry.block:
            for sealed in messages_in(entry.block, entry.element):
                if _MARK in sealed:
                    _note(found, entry.topic, attributes_of(entry.topic, sealed).get(HEADER))
    return found


def _note(found: Numbers, topic: Topic, told: object) -> None:
    name, sign, number = told.rpartition("#") if isinstance(told, str) else ("", "", "")
    if sign and number.isdecimal() and len(number) < 19:
        key = name, topic
        found[key] = max(found.get(key, 0), int(number))


def enter_numbers(database: sqlite3.Connection, numbers: Mapping[tuple[str, Topic], int]) -> None:
    rows = [(name, topic, number, row_checksum(name, topic, number)) for (name, topic), number in numbers.items()]
    database.executemany(_ENTER, rows)


def last_numbers(database: sqlite3.Connection, name: str, topics: Sequence[Topic]) -> dict[Topic, int]:
    """0 for those on which the producer has nothing in the log."""
    found = dict.fromkeys(topics, 0)
    for topic in topics:
        query = "SELECT number, checksum FROM producers WHERE name=? AND topic=?"
        for number, checksum in database.execute(query, (name, topic)).fetchall():
            if checksum != row_checksum(name, topic, number):
                raise DamagedLog(f"the number of producer {name} on {topic} does not match its checksum")
            found[topic] = number
    return found
