"""The one thread that writes to the database: what comes together is written together.

Changes that come at the same time share a transaction, and one sync of the disk if any of them asks for it.
Reports are kept for a while, the last one of each key, and written without a sync.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.live.broker.state.schema import StoreError, explained, open_database

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

MOST_AT_ONCE = 1000
"""Changes in one transaction."""


class _Change(NamedTuple):
    """A statement with its values, and where its outcome is waited for."""

    statement: str
    values: tuple[Any, ...]
    synced: bool
    outcome: Future[int]


class Writer:
    """Carries statements out; one that could not be has not happened, and the next is tried all the same."""

    def __init__(self, path: Path, batch_seconds: float) -> None:
        self._path, self._batch_seconds = path, batch_seconds
        self.connection = open_database(path)
        self._changes: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._kept: dict[Any, tuple[str, tuple[Any, ...]]] = {}
        self._due = threading.Event()
        """Set while something is kept that waits for its batch."""
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="malleable-store", daemon=True)
        self._thread.start()

    def write(self, statement: str, values: tuple[Any, ...], *, synced: bool = True) -> Future[int]:
        """Carry a statement out; the future has the row that it added, when it is on the disk.

        If it is not `synced`, it is only known to other readers then, and may be lost in a power cut.
        """
        change = _Change(statement, values, synced, Future())
        with self._lock:
            if self._closed:
                error = StoreError(f"{self._path} is closed", "the broker is about to end")
                change.outcome.set_exception(error)
            else:
                self._changes.put(change)
        return change.outcome

    def write_later(self, key: Any, statement: str, values: tuple[Any, ...]) -> None:
        """Carry a statement out with others in a while, unless one of the same key comes until then."""
        with self._lock:
            if self._closed:
                return
            self._kept[key] = statement, values
            if not self._due.is_set():
                self._due.set()
                self._changes.put(None)

    def close(self) -> None:
        """Write what is kept, and end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._changes.put(None)
        self._thread.join()
        self.connection.close()

    def _run(self) -> None:
        due: float | None = None
        while True:
            changes, closed = self._next(None if due is None else max(0.0, due - time.monotonic()))
            if changes:
                self._commit(changes)
            if self._due.is_set() and due is None:
                due = time.monotonic() + self._batch_seconds
            if due is not None and (closed or time.monotonic() >= due):
                due = None
                self._write_kept()
            if closed and self._changes.empty():
                return

    def _next(self, seconds: float | None) -> tuple[list[_Change], bool]:
        """The changes that are there after one has come or so many seconds have passed."""
        found: list[_Change] = []
        with suppress(queue.Empty):
            first = self._changes.get(timeout=seconds)
            while True:
                if first is not None:
                    found.append(first)
                if len(found) >= MOST_AT_ONCE:
                    break
                first = self._changes.get_nowait()
        return found, self._closed

    def _commit(self, changes: list[_Change]) -> None:
        """All changes in one transaction; no caller is told before that."""
        synced = any(change.synced for change in changes)
        try:
            with explained(self._path):
                rows = self._transact([(change.statement, change.values) for change in changes], synced)
        except Exception as error:  # noqa: BLE001 - those who wait have to be told, whatever it is
            for change in changes:
                change.outcome.set_exception(error)
            return
        for change, row in zip(changes, rows, strict=True):
            change.outcome.set_result(row)

    def _write_kept(self) -> None:
        """What may be lost is not worth a sync, nor an error: the next report says more."""
        with self._lock:
            kept, self._kept = self._kept, {}
            self._due.clear()
        with suppress(StoreError), explained(self._path):
            self._transact(list(kept.values()), synced=False)

    def _transact(self, statements: list[tuple[str, tuple[Any, ...]]], synced: bool) -> list[int]:
        connection = self.connection
        connection.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            rows = [_row(connection.execute(*each)) for each in statements]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return rows


def _row(cursor: sqlite3.Cursor) -> int:
    return cursor.lastrowid or 0
