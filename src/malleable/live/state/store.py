"""Submitted programs, kept in a database of SQLite.

    store = Store(folder)
    job = store.add(request).job              # on the disk when this returns, whatever happens next
    store.mark_started(job, pid, start_time)
    store.progress(job, 12, 100)              # written with others, a little later
    store.mark_ended(job, "finished", 0)

A program that was accepted and one that has ended are synced to the disk; progress is not.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from malleable.live.state.request import ProgramRequest
from malleable.live.state.schema import StoreError, check_integrity, explained, open_database, problems
from malleable.live.state.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Outcome = Literal["finished", "failed", "cancelled", "lost"]
State = Literal["queued", "running", "finished", "failed", "cancelled", "lost"]
PRESENT: tuple[State, ...] = ("queued", "running")
"""The states of programs that have not ended."""
BATCH_SECONDS = 1.0
"""Seconds that progress waits for company."""
COLUMNS = (
    "id, state, request, ticket, submitted, started, ended, pid, start_time, boot, exit_code, cancel_asked,"
    " units_done, units, reason"
)

SHOWN = (
    "state", "submitted", "started", "ended", "exit_code", "cancel_asked", "units_done", "units", "reason",
    "removed",
)  # fmt: skip
"""What anyone may know of a program, beside its request."""


@dataclass(frozen=True)
class StoredJob:
    """A submitted program, and what has become of it. Times are those of the system's clock, in seconds."""

    job: str
    state: State
    request: ProgramRequest
    ticket: str
    """What its supervisor shows to be let in."""
    submitted: float
    started: float | None = None
    ended: float | None = None
    pid: int | None = None
    """Of its supervisor; `start_time` and `boot` tell that from a later process with the same number."""
    start_time: int | None = None
    boot: str | None = None
    exit_code: int | None = None
    """Negative for a signal; None for a program that was never started, or whose supervisor died."""
    cancel_asked: bool = False
    units_done: float = 0.0
    units: float | None = None
    reason: str = ""
    """Why it ended, where its exit code does not say."""

    def to_dict(self) -> dict[str, Any]:
        """What anyone may know of it: without the ticket, and without variables, which may hold secrets."""
        request = self.request.parameters()
        request.pop("environment", None)
        return {"id": self.job, **{name: getattr(self, name) for name in SHOWN}, "request": request}

    @property
    def removed(self) -> bool:
        """Whether what it left, such as its output, is kept no longer; nor is its ticket then."""
        return not self.ticket


class Store:
    """The programs of one folder. Methods may be called from any thread.

    What the disk refuses is a `StoreError`, and has not happened. A damaged database, one of another version
    or of something else is an error too, and is left as it is.
    """

    def __init__(self, folder: Path, *, batch_seconds: float = BATCH_SECONDS) -> None:
        self.folder, self.path = folder, folder / "jobs.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            problem = f"cannot make {folder}: {error.strerror}"
            raise StoreError(problem, "name another folder (MALLEABLE_STATE)") from None
        self._reader = open_database(self.path)
        self._reading = threading.Lock()
        try:
            check_integrity(self._reader, self.path)
            self._writer = Writer(self.path, batch_seconds)
            self._number_above_folders()
        except BaseException:
            self._reader.close()
            raise

    def _number_above_folders(self) -> None:
        """Give out no number whose folder is there: an earlier database may have had that program."""
        numbers = [_number(path.name) for path in self.folder.glob("jobs/*")]
        highest = max((number for number in numbers if number is not None), default=0)
        with self._reading, explained(self.path):
            ((given_out,),) = self._reader.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='jobs'"
            )
        if highest > given_out:
            self._writer.write("DELETE FROM sqlite_sequence WHERE name='jobs'", ())
            self._writer.write("INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?)", (highest,))

    def add(self, request: ProgramRequest) -> StoredJob:
        """Accept a program; the name of its job is a number that is never used again."""
        ticket, now = secrets.token_hex(16), time.time()
        statement = "INSERT INTO jobs (request, ticket, submitted) VALUES (?, ?, ?)"
        row = self._writer.write(statement, (json.dumps(request.parameters()), ticket, now))
        return StoredJob(str(row), "queued", request, ticket, now)

    def remove(self, job: str) -> None:
        """Forget a program that was not accepted after all."""
        self._writer.write("DELETE FROM jobs WHERE id=?", (_number(job),))

    def mark_started(self, job: str, pid: int, start_time: int, boot: str = "") -> None:
        """The supervisor of a program is there, as the process with this number and start."""
        self._writer.write(
            "UPDATE jobs SET state='running', started=coalesce(started, ?), pid=?, start_time=?, boot=?"
            " WHERE id=? AND state IN ('queued', 'running')",
            (time.time(), pid, start_time, boot, _number(job)),
        )

    def mark_cancel_asked(self, job: str) -> None:
        """Someone wants a program to end; it is to be cancelled even if the broker ends before that."""
        self._writer.write("UPDATE jobs SET cancel_asked=1 WHERE id=?", (_number(job),))

    def mark_ended(
        self,
        job: str,
        outcome: Outcome,
        exit_code: int | None = None,
        *,
        started: float | None = None,
        ended: float | None = None,
        reason: str = "",
    ) -> None:
        """A program has ended; only the first of several endings counts."""
        self._writer.write(
            "UPDATE jobs SET state=?, exit_code=?, started=coalesce(?, started), ended=?, reason=?"
            " WHERE id=? AND state IN ('queued', 'running')",
            (outcome, exit_code, started, time.time() if ended is None else ended, reason, _number(job)),
        )

    def ended_beyond(self, most: int, before: float) -> list[str]:
        """Ended programs that are not among the last so many, and ended before a time; not those removed."""
        query = (
            "SELECT id FROM (SELECT id, ended, ticket FROM jobs WHERE state NOT IN ('queued', 'running')"
            " ORDER BY ended DESC LIMIT -1 OFFSET ?) WHERE ended < ? AND ticket != ''"
        )
        with self._reading, explained(self.path):
            return [str(job) for (job,) in self._reader.execute(query, (most, before))]

    def mark_removed(self, job: str) -> None:
        """What an ended program left is about to be removed: its variables and its ticket are now."""
        stored = self.get(job)
        if stored is not None:
            document = json.dumps(replace(stored.request, environment={}).parameters())
            self._writer.write(
                "UPDATE jobs SET ticket='', request=? WHERE id=? AND state NOT IN ('queued', 'running')",
                (document, _number(job)),
            )

    def change(self, job: str, request: ProgramRequest) -> None:
        """Keep what was changed of a program that is there: its weight, say, or its class."""
        document = json.dumps(request.parameters())
        self._writer.write("UPDATE jobs SET request=? WHERE id=?", (document, _number(job)))

    def progress(self, job: str, units_done: float, units: float | None = None) -> None:
        """A program has done so many units; it is written a little later, if nothing happens until then."""
        number = _number(job)
        self._writer.write_later(
            (job, "done"), "UPDATE jobs SET units_done=? WHERE id=?", (units_done, number)
        )
        if units is not None:
            self._writer.write_later((job, "units"), "UPDATE jobs SET units=? WHERE id=?", (units, number))

    def get(self, job: str) -> StoredJob | None:
        """One program; None where no program goes by that name."""
        number = _number(job)
        query = f"SELECT {COLUMNS} FROM jobs WHERE id=?"  # noqa: S608 - a constant
        found = [] if number is None else self._read(query, (number,))
        return found[0] if found else None

    def jobs(self, states: Iterable[State] | None = None, most: int | None = None) -> list[StoredJob]:
        """Programs in the order in which they came; with `most`, the last so many."""
        wanted = tuple(states) if states is not None else None
        where = "" if wanted is None else f"WHERE state IN ({', '.join('?' * len(wanted))})"
        found = self._read(
            f"SELECT {COLUMNS} FROM jobs {where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - question marks only
            (*(wanted or ()), -1 if most is None else most),
        )
        return found[::-1]

    def counts(self) -> dict[str, int]:
        """How many programs there are in each state."""
        with self._reading, explained(self.path):
            return dict(self._reader.execute("SELECT state, count(*) FROM jobs GROUP BY state"))

    def integrity(self) -> list[str]:
        """What is wrong with the database; nothing if it is sound."""
        with self._reading:
            return problems(self._reader)

    def close(self) -> None:
        """Write what waits, and close the database."""
        self._writer.close()
        with self._reading:
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, values: tuple[Any, ...]) -> list[StoredJob]:
        with self._reading, explained(self.path):
            return [_stored(row) for row in self._reader.execute(query, values)]


def _number(job: str) -> int | None:
    """The number of a job; None for what is no name of one."""
    plain = job.isascii() and job.isdigit() and len(job) < 19
    return int(job) if plain else None


def _stored(row: tuple[Any, ...]) -> StoredJob:
    job, state, request, *others = row
    made = StoredJob(str(job), state, ProgramRequest.of(json.loads(request)), *others)
    return replace(made, cancel_asked=bool(made.cancel_asked))
