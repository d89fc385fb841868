"""The database of submitted programs: how it is opened, what stands in it, and what can be wrong with it."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from malleable.errors import MalleableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = 1
APPLICATION = 0x4D4C4A42
"""Stands in the file's head, so that a database of something else is never written to."""
WAIT_SECONDS = 10.0
"""Seconds to wait for another process that writes; there is one only while brokers change places."""
TABLES = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL DEFAULT 'queued',
    request TEXT NOT NULL,
    ticket TEXT NOT NULL,
    submitted REAL NOT NULL,
    started REAL,
    ended REAL,
    pid INTEGER,
    start_time INTEGER,
    boot TEXT,
    exit_code INTEGER,
    cancel_asked INTEGER NOT NULL DEFAULT 0,
    units_done REAL NOT NULL DEFAULT 0,
    units REAL,
    reason TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state);
"""
ADDED_COLUMNS = ("accepted REAL", "noted REAL", "cpu_seconds REAL")
"""Columns that were added without a new version: whoever does not know them need not."""
ADDED_TABLES = """
CREATE TABLE IF NOT EXISTS time_passed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot TEXT NOT NULL,
    uptime REAL NOT NULL,
    wall REAL NOT NULL,
    seconds REAL NOT NULL
) STRICT;
"""


class StoreError(MalleableError, OSError):
    """The database of submitted programs cannot be read or written."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database, made if there is none; one that is damaged or not ours is left as it is."""
    with explained(path):
        connection = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        with explained(path):
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (entries,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if entries and application != APPLICATION:
        raise StoreError(f"{path} is a database of something else", "name another folder (MALLEABLE_STATE)")
    if entries and version != VERSION:
        raise StoreError(
            f"{path} is of version {version}, this malleable reads version {VERSION}",
            "use the malleable that wrote it, or name another folder (MALLEABLE_STATE)",
        )
    if not entries:
        path.chmod(0o600)  # variables of programs may hold secrets; the files beside it get the same mode
    connection.execute("PRAGMA journal_mode=WAL")
    if not entries:
        connection.executescript(
            f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id={APPLICATION};"
            f" PRAGMA user_version={VERSION}; COMMIT"
        )
    else:
        connection.execute("BEGIN IMMEDIATE")  # it must be possible to write, and better to know it now
        connection.execute("ROLLBACK")


def add_what_is_new(connection: sqlite3.Connection, path: Path) -> None:
    """Add what an earlier malleable did not have."""
    with explained(path):
        there = {row[1] for row in connection.execute("PRAGMA table_info(jobs)")}
        new = [column for column in ADDED_COLUMNS if column.split()[0] not in there]
        added = "".join(f"ALTER TABLE jobs ADD COLUMN {column};" for column in new)
        connection.executescript(f"BEGIN IMMEDIATE; {added} {ADDED_TABLES} COMMIT")


def check_integrity(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse to go on with a damaged database."""
    found = problems(connection)
    if found:
        hint = "move it away to start with an empty one; outputs stay in jobs/"
        raise StoreError(f"{path} is damaged: {found[0]}", hint)


def problems(connection: sqlite3.Connection) -> list[str]:
    """What SQLite's integrity check finds wrong; nothing in a sound database."""
    try:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    found = [line for row in rows for line in str(row[0]).splitlines() if not line.startswith("***")]
    return [] if found == ["ok"] else found


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors of SQLite in one line, with what to do."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        problem = f"cannot use {path}: {error.strerror}"
        raise StoreError(problem, "look at the folder's rights") from None
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        raise StoreError(*_words(name, error, path)) from None


def _words(name: str, error: sqlite3.Error, path: Path) -> tuple[str, str]:
    if name.startswith("SQLITE_FULL") or "disk is full" in str(error):
        return f"the disk is full: cannot write {path}", "free some space; nothing that was accepted is lost"
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return f"cannot write {path}: {error}", "make its folder writable, or name another (MALLEABLE_STATE)"
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return f"{path} is damaged: {error}", "move it away to start with an empty one; outputs stay in jobs/"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"{path} is in use by another process", "stop the other broker"
    return f"cannot use {path}: {error}", "look at the disk and at the folder's rights"
