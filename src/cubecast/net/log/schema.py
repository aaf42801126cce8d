"""The log's database: its tables, and how it is opened.

Every commit is on the disk when it returns (`synchronous=FULL` syncs the write-ahead log). Checkpoints are made by the
writer, never by SQLite on its own, because the witness of what was committed begins anew with each.
"""

import sqlite3
from pathlib import Path

from cubecast.errors import BadInput

DATABASE, MARKS = "log.sqlite", "log.marks"
VERSION = 1
BUSY = 5000
"""Milliseconds to wait for another connection that holds a lock."""

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE topics (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, first INTEGER NOT NULL, last INTEGER NOT NULL,
    bytes INTEGER NOT NULL, checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE sources (
    topic INTEGER NOT NULL, source INTEGER NOT NULL, incarnation INTEGER NOT NULL, counter INTEGER NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (topic, source)
) STRICT, WITHOUT ROWID;
CREATE TABLE batches (
    seq INTEGER PRIMARY KEY, topic INTEGER NOT NULL, offset INTEGER NOT NULL, count INTEGER NOT NULL, at REAL NOT NULL,
    source INTEGER NOT NULL, incarnation INTEGER NOT NULL, counter INTEGER NOT NULL,
    head INTEGER NOT NULL, body INTEGER NOT NULL, block BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX by_offset ON batches (topic, offset);
CREATE INDEX by_id ON batches (topic, source, incarnation, counter);
CREATE TABLE damage (
    topic INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, ids BLOB NOT NULL, why TEXT NOT NULL,
    PRIMARY KEY (topic, first)
) STRICT, WITHOUT ROWID;
"""


def open_to_write(directory: Path, identity: str) -> sqlite3.Connection:
    """The database, made when it is not there; `identity` is a new one's name."""
    path = directory / DATABASE
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        _prepare(database, path, identity)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: Path, identity: str) -> None:
    try:
        database.execute("PRAGMA page_size=8192")
        database.execute("PRAGMA auto_vacuum=INCREMENTAL")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("PRAGMA wal_autocheckpoint=0")
        database.execute("PRAGMA cell_size_check=ON")
        database.execute(f"PRAGMA busy_timeout={BUSY}")
        if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            values = f"('version', '{VERSION}'), ('identity', '{identity}')"
            database.executescript(f"BEGIN; {TABLES} INSERT INTO meta VALUES {values}; COMMIT;")
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{path} cannot be opened as a log: {error}") from None
    check_version(database, path)


def open_to_read(directory: Path) -> sqlite3.Connection:
    """Beside a running writer, or alone."""
    path = directory / DATABASE
    if not path.is_file():
        raise BadInput(f"{directory} holds no log: there is no {DATABASE}")
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute(f"PRAGMA busy_timeout={BUSY}")
        database.execute("PRAGMA cell_size_check=ON")
        check_version(database, path)
    except sqlite3.DatabaseError as error:
        database.close()
        raise BadInput(f"{path} cannot be opened as a log: {error}") from None
    except BaseException:
        database.close()
        raise
    return database


def check_version(database: sqlite3.Connection, path: Path) -> None:
    try:
        row = database.execute("SELECT value FROM meta WHERE name='version'").fetchone()
    except sqlite3.OperationalError as error:
        raise BadInput(f"{path} is not a log of cubecast: {error}") from None
    if row is None or row[0] != str(VERSION):
        raise BadInput(f"{path} is a log of version {row and row[0]}; this program reads version {VERSION}")


def identity(database: sqlite3.Connection) -> str:
    row = database.execute("SELECT value FROM meta WHERE name='identity'").fetchone()
    return "" if row is None else str(row[0])
