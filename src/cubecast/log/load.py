"""What a log's small tables say, and whether that is true."""

import sqlite3
from dataclasses import dataclass, field

import msgspec

from cubecast.ids import MessageId, Topic
from cubecast.log.index import Account, decode_runs, topic_checksum
from cubecast.log.record import Cut, Damage, Run, row_checksum


@dataclass(slots=True)
class Held:
    """One topic."""

    account: Account
    actual: int
    """The last offset that a batch or an entry of damage accounts for."""
    newest: Cut = field(default_factory=dict)
    damaged: list[Damage] = field(default_factory=list)


@dataclass(slots=True)
class LogContents:
    topics: dict[Topic, Held]
    complaints: list[str]
    """Rows of the small tables that are not what was written; what they said was put together again from the rest."""


def load(database: sqlite3.Connection) -> LogContents:
    contents = LogContents({}, [])
    for number, name, first, last, size, checksum in database.execute("SELECT * FROM topics").fetchall():
        account, actual = Account(number, first, last, size), _last(database, number)
        if checksum != topic_checksum(name, account):
            contents.complaints.append(f"row {number} of topics ({name}) does not match its checksum")
            account = _counted(database, number, actual)
        contents.topics[name] = Held(account, actual)
    held = {one.account.number: one for one in contents.topics.values()}
    for number, source, incarnation, counter, checksum in database.execute("SELECT * FROM sources").fetchall():
        if checksum != row_checksum(number, source, incarnation, counter):
            place = f"the row of topic {number} and publisher {source}"
            contents.complaints.append(f"{place} of sources does not match its checksum")
            incarnation, counter = newest_of(database, number, source) or (-1, 0)
        if number in held:
            held[number].newest[source] = incarnation, counter
    for number, first, last, ids, why in database.execute("SELECT * FROM damage ORDER BY topic, first").fetchall():
        if number in held:
            held[number].damaged.append(Damage(first, last, _runs(ids), why))
            held[number].actual = max(held[number].actual, last)
    return contents


def _runs(ids: bytes) -> tuple[Run, ...]:
    try:
        return decode_runs(ids)
    except msgspec.MsgspecError:
        return ()


def _last(database: sqlite3.Connection, number: int) -> int:
    query = "SELECT offset + count - 1 FROM batches WHERE topic=? ORDER BY offset DESC LIMIT 1"
    row = database.execute(query, (number,)).fetchone()
    return 0 if row is None else int(row[0])


def _counted(database: sqlite3.Connection, number: int, actual: int) -> Account:
    query = "SELECT min(offset), sum(length) FROM batches WHERE topic=?"
    first, size = database.execute(query, (number,)).fetchone()
    return Account(number, first or actual + 1, actual, size or 0)


def newest_of(database: sqlite3.Connection, number: int, source: int) -> tuple[int, int] | None:
    query = (
        "SELECT incarnation, counter + count - 1 FROM batches WHERE topic=? AND source=? "
        "ORDER BY incarnation DESC, counter DESC LIMIT 1"
    )
    row = database.execute(query, (number, source)).fetchone()
    return None if row is None else (row[0], row[1])


def missing_runs(database: sqlite3.Connection, number: int, newest: Cut, first: int, last: int) -> tuple[Run, ...]:
    """The names of the messages at these offsets, from the holes they leave in their publishers' counters.

    Nothing when the holes do not add up to the range, as when a publisher was restarted within it.
    """
    runs = []
    for source, ultimate in newest.items():
        before = _neighbour(database, number, source, f"offset<{first}", "DESC", "counter+count-1") or (-1, 0)
        after = _neighbour(database, number, source, f"offset>{last}", "ASC", "counter-1") or ultimate
        if after[0] == before[0] and after[1] > before[1]:
            runs.append(Run(MessageId(source, before[0], before[1] + 1), after[1] - before[1]))
        elif after[0] != before[0] and after[1] > 0:
            runs.append(Run(MessageId(source, after[0], 1), after[1]))
    return tuple(runs) if sum(run.many for run in runs) == last - first + 1 else ()


def _neighbour(
    database: sqlite3.Connection, number: int, source: int, where: str, order: str, counter: str
) -> tuple[int, int] | None:
    query = (
        f"SELECT incarnation, {counter} FROM batches WHERE topic=? AND source=? AND {where} "
        f"ORDER BY incarnation {order}, counter {order} LIMIT 1"
    )
    row = database.execute(query, (number, source)).fetchone()
    return None if row is None else (row[0], row[1])


# What is known of one topic without asking the database.

NOTHING = (-1, 0)


@dataclass(slots=True)
class LoggedTopic:
    topic: Topic
    first: int = 1
    """The first offset kept."""
    last: int = 0
    """The last offset given."""
    committed: int = 0
    """The last offset in the database."""
    newest: Cut = field(default_factory=dict)
    """Per publisher the newest message ever logged, whether or not it is still kept."""
    damaged: list[Damage] = field(default_factory=list)
    """In the order of offsets."""

    def note(self, first: MessageId, count: int) -> None:
        """These follow."""
        self.last += count
        source, incarnation, counter = first
        position = incarnation, counter + count - 1
        if self.newest.get(source, NOTHING) < position:
            self.newest[source] = position

    def commit(self, last: int) -> None:
        """Everything up to this offset is in the database."""
        self.committed = max(self.committed, last)
