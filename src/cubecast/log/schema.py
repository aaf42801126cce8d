"""The log's index: an SQLite database that says where in the segments what is.

The segments are synced before the index is told of them, so it need not be synced with each commit: what it lacks after
a power failure is found at the end of the last segment. Checkpoints are made by the writer, never by SQLite on its own,
because the witness of what was committed begins anew with each.
"""

import sqlite3
from pathlib import Path

from cubecast.errors import BadInput, DamagedLog

DATABASE, MARKS = "log.index", "log.marks"
VERSION = 2
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, ValueError, TypeError, OverflowError)
"""What reading a damaged index may raise: SQLite looks at its structure, not at what is in it."""
BUSY = 5000
"""Milliseconds to wait for another connection that holds a lock."""

PRODUCERS = """
CREATE TABLE IF NOT EXISTS producers (
    name TEXT NOT NULL, topic TEXT NOT NULL, number INTEGER NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (name, topic)
) STRICT, WITHOUT ROWID
"""
"""Came later than the others, so logs of the same version may lack it."""
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
    file INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX by_offset ON batches (topic, offset);
CREATE TABLE damage (
    topic INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, ids BLOB NOT NULL, why TEXT NOT NULL,
    PRIMARY KEY (topic, first)
) STRICT, WITHOUT ROWID;
"""


def open_to_write(directory: Path) -> sqlite3.Connection:
    """The index, made when it is not there. DamagedLog when it is useless, and has to be made again."""
    path = directory / DATABASE
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        database.execute("PRAGMA auto_vacuum=INCREMENTAL")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("PRAGMA wal_autocheckpoint=0")
        _prepare(database)
        if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            insert = f"INSERT INTO meta VALUES ('version', '{VERSION}')"
            database.executescript(f"BEGIN; {TABLES} {insert}; COMMIT;")
        check_version(database, path)
        database.execute(PRODUCERS)
    except UNREADABLE as error:
        database.close()
        raise DamagedLog(f"{path}: {error}") from None
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA cell_size_check=ON")
    database.execute(f"PRAGMA busy_timeout={BUSY}")


def open_to_read(directory: Path) -> sqlite3.Connection:
    """Beside a running writer, or alone."""
    path = directory / DATABASE
    if not path.is_file():
        raise BadInput(f"{directory} holds no log: there is no {DATABASE}")
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(database)
        check_version(database, path)
    except UNREADABLE as error:
        database.close()
        raise BadInput(f"{path} cannot be read as a log: {error}") from None
    except BaseException:
        database.close()
        raise
    return database


def check_version(database: sqlite3.Connection, path: Path) -> None:
    row = database.execute("SELECT value FROM meta WHERE name='version'").fetchone()
    if row is None or row[0] != str(VERSION):
        raise BadInput(f"{path} is of version {row and row[0]}; this program reads version {VERSION}")


def set_aside(directory: Path) -> Path:
    """Make room for a new index; the old one is kept for people to look at."""
    path = directory / DATABASE
    aside = path.with_suffix(".damaged")
    path.replace(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside
