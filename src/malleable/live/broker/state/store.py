"""Submitted programs, kept in a database of SQLite.

    store = Store(folder)
    job = store.add(request).job              # on the disk when this returns, whatever happens next
    store.mark_started(job, pid, start_time)
    store.progress(job, 12, 100)              # written with others, a little later
    store.mark_ended(job, "finished", 0)

A program that was accepted and one that has ended are synced to the disk; starts and progress are not.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from malleable.live.broker.state.request import ProgramRequest
from malleable.live.broker.state.running_time import Moment, RunningTime
from malleable.live.broker.state.schema import (
    StoreError,
    add_what_is_new,
    check_integrity,
    explained,
    open_database,
    problems,
)
from malleable.live.broker.state.writer import Writer
from malleable.live.system.whole_files import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Outcome = Literal["finished", "failed", "cancelled", "lost"]
State = Literal["queued", "running", "finished", "failed", "cancelled", "lost"]
PRESENT: tuple[State, ...] = ("queued", "running")
"""The states of programs that have not ended."""
ENDED: tuple[State, ...] = ("finished", "failed", "cancelled", "lost")
MOST_REMOVED = 10_000
"""Programs that are still known when what they left was removed: as many as can be asked for at once."""
BATCH_SECONDS = 1.0
"""Seconds that progress waits for company."""
COLUMNS = (
    "id, state, request, ticket, submitted, started, ended, pid, start_time, boot, exit_code, cancel_asked,"
    " units_done, units, reason, accepted, cpu_seconds"
)

SHOWN = (
    "state", "submitted", "started", "ended", "exit_code", "cancel_asked", "units_done", "units", "reason",
    "removed",
)  # fmt: skip
"""What anyone may know of a program, beside its request."""
OWN = {"environment", "stdin", "stdin_file"}
"""What of its request is between whoever submitted it and its supervisor."""


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
    accepted: float | None = None
    """When it was submitted, in the seconds of `Store.now`; None if an earlier malleable accepted it."""
    cpu_seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """What anyone may know of it: without the ticket, and without variables, which may hold secrets."""
        known = self.request.parameters()
        request = {name: value for name, value in known.items() if name not in OWN}
        return {"id": self.job, **{name: getattr(self, name) for name in SHOWN}, "request": request}

    @property
    def removed(self) -> bool:
        """Whether what it left, such as its output, is kept no longer; nor is its ticket then."""
        return not self.ticket


class Store:
    """The programs of one folder. Methods may be called from any thread.

    What the disk refuses is a `StoreError`, and has not happened; only an end is known from then on, in
    memory, whether the disk takes it or not. A damaged database, one of another version or of something else
    is an error too, and is left as it is.
    """

    def __init__(self, folder: Path, *, batch_seconds: float = BATCH_SECONDS) -> None:
        self.folder, self.path = folder, folder / "jobs.sqlite"
        self._left = folder / "jobs.left"
        self._ends: dict[str, dict[str, Any]] = {}
        """What became of programs whose end is not on the disk yet."""
        self._waits: dict[str, str] = {}
        """Why programs are not started, where it is not for want of cores."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            problem = f"cannot make {folder}: {error.strerror}"
            raise StoreError(problem, "name another folder (MALLEABLE_STATE)") from None
        as_left = self._is_as_left()
        self._reader = open_database(self.path)
        self._reading = threading.Lock()
        try:
            with explained(self._left):
                self._left.unlink(missing_ok=True)
            if not as_left:
                check_integrity(self._reader, self.path)
            add_what_is_new(self._reader, self.path)
            self._writer = Writer(self.path, batch_seconds)
            self._time = self._running_time()
            self._number_above_folders()
        except BaseException:
            self._reader.close()
            raise

    def _is_as_left(self) -> bool:
        """Whether the last broker ended in good order, and nobody has written to the database since."""
        found = read_document(self._left)
        return found is not None and found == _identity(self.path)

    def _running_time(self) -> RunningTime:
        with self._reading, explained(self.path):
            row = self._reader.execute("SELECT boot, uptime, wall, seconds FROM time_passed").fetchone()
        return RunningTime(None if row is None else Moment(*row))

    def now(self) -> float:
        """Seconds that this folder's brokers have counted, by no clock that can be set (`RunningTime`)."""
        return self._time.now()

    def note_time(self) -> None:
        """Write down how many seconds were counted, for the next broker."""
        self._write(
            "INSERT OR REPLACE INTO time_passed (id, boot, uptime, wall, seconds) VALUES (1, ?, ?, ?, ?)",
            self._time.moment(),
            synced=False,
        )

    def age(self, stored: StoredJob) -> float:
        """Seconds since a program was submitted."""
        if stored.accepted is None:
            return max(0.0, time.time() - stored.submitted)
        return max(0.0, self.now() - stored.accepted)

    def _number_above_folders(self) -> None:
        """Give out no number whose folder is there: an earlier database may have had that program."""
        numbers = [_number(path.name) for path in self.folder.glob("jobs/*")]
        highest = max((number for number in numbers if number is not None), default=0)
        with self._reading, explained(self.path):
            ((given_out,),) = self._reader.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='jobs'"
            )
        if highest > given_out:
            self._write("DELETE FROM sqlite_sequence WHERE name='jobs'", ())
            self._write("INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?)", (highest,))

    def _write(
        self,
        statement: str,
        values: tuple[Any, ...],
        *,
        synced: bool = True,
        then: Callable[[BaseException | None], object] | None = None,
    ) -> None:
        """Carry a statement out. With `then` it is not waited for: that is called with its error or None."""
        outcome = self._writer.write(statement, values, synced=synced)
        if then is None:
            outcome.result()
        else:
            outcome.add_done_callback(lambda done: then(done.exception()))

    def add(self, request: ProgramRequest) -> StoredJob:
        """Accept a program; the name of its job is a number that is never used again."""
        ticket, submitted, accepted = secrets.token_hex(16), time.time(), self.now()
        statement = "INSERT INTO jobs (request, ticket, submitted, accepted) VALUES (?, ?, ?, ?)"
        values = json.dumps(request.parameters()), ticket, submitted, accepted
        row = self._writer.write(statement, values).result()
        return StoredJob(str(row), "queued", request, ticket, submitted, accepted=accepted)

    def remove(self, job: str) -> None:
        """Forget a program that was not accepted after all."""
        self._write("DELETE FROM jobs WHERE id=?", (_number(job),))

    def mark_started(self, job: str, pid: int, start_time: int, boot: str = "") -> None:
        """The supervisor of a program is there, as the process with this number and start.

        It is not synced: after a power cut no program runs, and its folder says that it was started.
        """
        self._write(
            "UPDATE jobs SET state='running', started=coalesce(started, ?), pid=?, start_time=?, boot=?"
            " WHERE id=? AND state IN ('queued', 'running')",
            (time.time(), pid, start_time, boot, _number(job)),
            synced=False,
        )

    def mark_cancel_asked(self, job: str) -> None:
        """Someone wants a program to end; it is to be cancelled even if the broker ends before that."""
        self._write("UPDATE jobs SET cancel_asked=1 WHERE id=?", (_number(job),))

    def mark_ended(
        self,
        job: str,
        outcome: Outcome,
        exit_code: int | None = None,
        *,
        started: float | None = None,
        ended: float | None = None,
        reason: str = "",
        cpu_seconds: float | None = None,
        then: Callable[[BaseException | None], object] | None = None,
    ) -> None:
        """A program has ended; only the first of several endings counts. Its variables are not kept.

        With `then` it is not waited for: that is called with what went wrong, or None.
        """
        ended, reason = time.time() if ended is None else ended, _utf8(reason)
        end = {"state": outcome, "exit_code": exit_code, "ended": ended, "reason": reason}
        end |= {"cpu_seconds": cpu_seconds} | ({} if started is None else {"started": started})
        end = self._ends.setdefault(job, end)

        def noted(error: BaseException | None) -> None:
            if error is None:
                self._ends.pop(job, None)
            if then is not None:
                then(error)

        outcome_noted = self._writer.write(
            "UPDATE jobs SET state=?, exit_code=?, started=coalesce(?, started), ended=?, noted=?, reason=?,"
            " cpu_seconds=?, request=json_remove(request, '$.environment')"
            " WHERE id=? AND state IN ('queued', 'running')",
            (
                *(end["state"], end["exit_code"], end.get("started"), end["ended"], self.now()),
                *(end["reason"], end["cpu_seconds"], _number(job)),
            ),
        )
        outcome_noted.add_done_callback(lambda done: noted(done.exception()))
        if then is None:
            outcome_noted.result()

    def explain(self, job: str, reason: str) -> None:
        """Say why a program that waits is not started; nothing where there is no such reason any more."""
        if reason:
            self._waits[job] = reason
        else:
            self._waits.pop(job, None)

    def ended_beyond(self, most: int, seconds: float) -> list[str]:
        """Ended programs that are not among the last so many, and ended so long ago; not those removed.

        Ages are those of `now`: what was there before time was counted has ended when that began.
        """
        query = (
            "SELECT id FROM (SELECT id, coalesce(noted, 0) AS noted, ticket FROM jobs"
            " WHERE state NOT IN ('queued', 'running') ORDER BY 2 DESC, id DESC LIMIT -1 OFFSET ?)"
            " WHERE noted <= ? AND ticket != ''"
        )
        with self._reading, explained(self.path):
            return [str(job) for (job,) in self._reader.execute(query, (most, self.now() - seconds))]

    def ended(self) -> dict[str, bool]:
        """All ended programs, and whether what each left was removed."""
        query = "SELECT id, ticket='' FROM jobs WHERE state NOT IN ('queued', 'running')"
        with self._reading, explained(self.path):
            return {str(job): bool(removed) for job, removed in self._reader.execute(query)}

    def mark_removed(self, jobs: Iterable[str]) -> None:
        """What ended programs left is about to be removed; their tickets are now."""
        self._write(
            "UPDATE jobs SET ticket='', request=json_remove(request, '$.environment')"
            " WHERE id IN (SELECT value FROM json_each(?)) AND state NOT IN ('queued', 'running')",
            (json.dumps([_number(job) for job in jobs]),),
        )

    def forget_removed(self) -> None:
        """Of the programs whose folders were removed, know the last `MOST_REMOVED` only."""
        self._write(
            "DELETE FROM jobs WHERE ticket='' AND id <= (SELECT id FROM jobs WHERE ticket='' ORDER BY id DESC"
            " LIMIT 1 OFFSET ?)",
            (MOST_REMOVED,),
            synced=False,
        )

    def change(self, job: str, request: ProgramRequest) -> None:
        """Keep what was changed of a program that is there: its weight, say, or its class."""
        document = json.dumps(request.parameters())
        self._write("UPDATE jobs SET request=? WHERE id=?", (document, _number(job)))

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

    def last_ended(self, most: int) -> list[StoredJob]:
        """The last so many of the programs that have ended, in the order in which they came."""
        found = []
        for state in ENDED:  # in one query, all that have ended would be sorted
            query = f"SELECT {COLUMNS} FROM jobs WHERE state=? ORDER BY id DESC LIMIT ?"  # noqa: S608 - a constant
            found += self._read(query, (state, most))
        return sorted(found, key=lambda stored: int(stored.job))[-most:] if most else []

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
        with suppress(StoreError):  # it is closed already, or the disk is full: less time has passed then
            self.note_time()
        self._writer.close()
        with self._reading:
            self._reader.close()
        with suppress(OSError):
            write_document(self._left, _identity(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, values: tuple[Any, ...]) -> list[StoredJob]:
        with self._reading, explained(self.path):
            return [self._as_known(_stored(row)) for row in self._reader.execute(query, values)]

    def _as_known(self, stored: StoredJob) -> StoredJob:
        """What stands in the database, and what is known beyond that."""
        if stored.state not in PRESENT:
            return stored
        if stored.job in self._ends:
            return replace(stored, **self._ends[stored.job])
        reason = self._waits.get(stored.job, "") if stored.state == "queued" else ""
        return replace(stored, reason=reason) if reason else stored


def _identity(path: Path) -> list[int] | None:
    """What tells whether a file was written since; None where that cannot be told."""
    with suppress(OSError):
        if not path.with_name(f"{path.name}-wal").exists():
            found = path.stat()
            return [found.st_ino, found.st_size, found.st_mtime_ns]
    return None


def _number(job: str) -> int | None:
    """The number of a job; None for what is no name of one."""
    plain = job.isascii() and job.isdigit() and len(job) < 19
    return int(job) if plain else None


def _utf8(text: str) -> str:
    """A text that SQLite takes: names of files may hold bytes that are none."""
    return text.encode("utf-8", "backslashreplace").decode()


def _stored(row: tuple[Any, ...]) -> StoredJob:
    job, state, request, *others = row
    made = StoredJob(str(job), state, ProgramRequest.of(json.loads(request)), *others)
    return replace(made, cancel_asked=bool(made.cancel_asked))
