"""The folder of a submitted program: what its supervisor needs to know, and what it leaves for the broker.

    request.json     what to run, and how to reach the broker (written by the broker, before the start)
    supervisor       locked by the supervisor while it lives; its process stands in it
    started          there from just before the command is started: it is never started again
    program          the first process of the program
    held.json        the cores that the program may be using now
    output, errors   what the program prints
    result.json      how it ended

The lock and the marker decide what is true, not the database: two supervisors of one program may be started
by two brokers of which the first was killed, and still its command is started once. The folder is the user's
own, as commands, variables and tickets stand in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from malleable.live.system.process_tree import Process, look_up
from malleable.live.system.whole_files import raise_if_short, read_document, write_document

LOCK_SECONDS = 2.0
"""Seconds for which a supervisor tries to get the lock; a broker that only looks holds it for an instant."""
ROOM = 1024
"""Bytes that are kept free for the result, so that it can be written on a full disk."""
LONGEST_REASON = 120
"""Letters, of up to six bytes each."""
PRINTED = ("output", "errors", "supervisor.log")
LAST = ("request.json", "result.json")
"""What tells whose folder it is, and that what stands in the other files is over."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


class HeldCores(NamedTuple):
    """Cores that a program may be using, with its CPUs if it is bound to some, since when, and what it had.

    `since` is a time of the monotonic clock, which all processes of the machine share until it is started
    anew, and nobody sets. `seconds` has the time that was spent at each width before.
    """

    cores: int = 0
    cpus: tuple[int, ...] = ()
    since: float = 0.0
    seconds: tuple[tuple[int, float], ...] = ()

    def then(self, cores: int, cpus: tuple[int, ...], now: float) -> HeldCores:
        """What is held after a change of width."""
        return HeldCores(cores, cpus, now, tuple(self.history(now).items()))

    def history(self, now: float) -> dict[int, float]:
        """Seconds at each width until now."""
        spent = dict(self.seconds)
        if self.cores:
            spent[self.cores] = spent.get(self.cores, 0.0) + max(0.0, now - self.since)
        return spent


@dataclass(frozen=True)
class Result:
    """How a program ended; without an exit code it was not started, or is lost, which only a broker says.

    Times are of the system's clock.
    """

    outcome: Literal["finished", "failed", "cancelled", "lost"]
    exit_code: int | None = None
    started: float | None = None
    ended: float | None = None
    reason: str = ""
    cpu_seconds: float | None = None


class ProcessName(NamedTuple):
    """A process, by what no other process has had since its number was first given out."""

    pid: int
    start_time: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessName | None:
        """The name of a process that is alive."""
        found = look_up(pid)
        return None if found is None else cls(pid, found.start, this_boot())

    def process(self) -> Process | None:
        """The process, if it is alive."""
        found = look_up(self.pid) if self.boot == this_boot() else None
        return found if found is not None and found.start == self.start_time else None


@cache
def this_boot() -> str:
    """What tells this start of the machine from others; numbers of processes begin anew with each."""
    with suppress(OSError):
        return BOOT.read_text(encoding="ascii").strip()
    return ""


class JobFolder:
    """The files of one program; nothing is kept in memory, so broker and supervisor each have their own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # What the broker does.

    def prepare(self, document: dict[str, Any]) -> None:
        """Make the folder, with what the supervisor has to know."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_document(self.path / "request.json", document)

    def is_of(self, ticket: str) -> bool:
        """Whether it was made for the program with this ticket, or is still to be."""
        found = read_document(self.path / "request.json")
        if isinstance(found, dict):
            return bool(found.get("ticket", ticket) == ticket)
        return not self.started

    @property
    def is_tidy(self) -> bool:
        """Whether nothing is left here but what the program has printed."""
        return not (self.path / "request.json").exists()

    def tidy(self) -> None:
        """Keep what the program has printed only, now that its end is noted elsewhere; without that, nothing.

        What says that it was started goes last: a supervisor that comes too late must not start it again.
        """
        with suppress(OSError):
            printed = {name for name in PRINTED if _size(self.path / name)}
            for path in sorted(self.path.iterdir(), key=lambda path: path.name in LAST):
                if path.name not in {*printed, "started"}:
                    path.unlink()
            if not printed:
                (self.path / "started").unlink(missing_ok=True)
                self.path.rmdir()

    def supervisor(self) -> ProcessName | None:
        """The supervisor that lives now; None if there is none."""
        end = time.monotonic() + LOCK_SECONDS
        while self._locked():
            name = _name(read_document(self.path / "supervisor"))
            if name is not None and name.process() is not None:
                return name
            if time.monotonic() > end:  # it is locked by something that is no supervisor
                return None
            time.sleep(0.005)
        return None

    def _locked(self) -> bool:
        try:
            file = os.open(self.path / "supervisor", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise_if_short(error)
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
        return False

    @property
    def started(self) -> bool:
        """Whether the command was started, by whomever, or was about to be."""
        return (self.path / "started").exists()

    def held(self) -> HeldCores:
        """The cores that the program may be using."""
        found = read_document(self.path / "held.json")
        if not found:
            return HeldCores()
        spent = tuple((int(cores), float(seconds)) for cores, seconds in found["seconds"])
        return HeldCores(int(found["cores"]), tuple(found["cpus"]), float(found["since"]), spent)

    def program(self) -> ProcessName | None:
        """The first process of the program, alive or not."""
        return _name(read_document(self.path / "program"))

    def result(self) -> Result | None:
        """How the program ended; None while it has not."""
        found = read_document(self.path / "result.json")
        return Result(**found) if found else None

    # What the supervisor does.

    def lock(self) -> bool:
        """Become the supervisor, for as long as this process lives; False where there is another one.

        Nor is one needed where there is no folder: the program has ended, and has printed nothing.
        """
        end = time.monotonic() + LOCK_SECONDS
        try:
            file = os.open(self.path / "supervisor", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > end:
                    os.close(file)
                    return False
                time.sleep(0.02)
            else:
                break
        name = ProcessName.of(os.getpid())
        os.pwrite(file, json.dumps(name).ljust(ROOM // 4).encode(), 0)
        return True  # the file stays open, and so locked, until this process ends

    def request(self) -> dict[str, Any]:
        """What the broker wrote."""
        return dict(json.loads((self.path / "request.json").read_text(encoding="utf-8")))

    def mark_started(self) -> bool:
        """Mark that the command is about to be started; False where it was marked before.

        The mark is on the disk when this returns, and there is room for the result: file systems reserve what
        is written. Neither is there after an `OSError`.
        """
        (self.path / "result.part").write_bytes(b" " * ROOM)
        try:
            marker = os.open(
                self.path / "started", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:
            return False
        os.close(marker)
        try:
            self._sync_names()  # it is empty: that it has a name is all there is to it
        except OSError:
            self.unmark_started()
            raise
        return True

    def unmark_started(self) -> None:
        """The command could not be started after all: it may be tried again."""
        with suppress(OSError):
            (self.path / "started").unlink()

    def note_program(self, pid: int) -> None:
        """Remember the program's first process, in case this one dies."""
        with suppress(OSError):
            write_document(self.path / "program", ProcessName.of(pid))

    def note_held(self, held: HeldCores) -> None:
        """Remember the cores in use: before using more, and after using fewer. Raises no error."""
        with suppress(OSError):
            write_document(self.path / "held.json", held._asdict())

    def write_result(self, result: Result) -> None:
        """Say how the program ended: whole, and on the disk, or not at all (`OSError`)."""
        text = json.dumps({**asdict(result), "reason": result.reason[:LONGEST_REASON]}).encode()
        file = os.open(self.path / "result.part", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, text.ljust(ROOM), 0)
            os.fsync(file)
        finally:
            os.close(file)
        (self.path / "result.part").replace(self.path / "result.json")
        self._sync_names()

    def _sync_names(self) -> None:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _name(found: Any) -> ProcessName | None:
    return ProcessName(*found) if isinstance(found, list) and len(found) == 3 else None
