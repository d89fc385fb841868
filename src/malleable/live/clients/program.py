"""Any program as a job of a broker: it starts at the first grant, follows its orders, and ends once.

    client = ProgramClient(command, folder)
    seat = join(JobRequest("etl"), client.on_order, client.on_cancel)
    ending = client.run(seat)

Orders come from any thread and are carried out one after the other, in the thread of `run`. The cores in use
are noted in the folder before more are used and after fewer are, so that whoever reads it, at any moment and
without asking, knows at least the cores that are in use.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.errors import ExecutionError
from malleable.execution.thread_variables import VARIABLES
from malleable.live.job_folder import HeldCores
from malleable.live.membership import INSIDE_PROGRAM
from malleable.live.programs.program import Program

if TYPE_CHECKING:
    from typing import Literal

    from malleable.live.job_folder import JobFolder
    from malleable.live.membership import Membership
    from malleable.live.orders import Order
    from malleable.live.programs.progress import Progress

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
"""Seconds between two attempts to start on a disk that takes nothing."""


@dataclass(frozen=True)
class Command:
    """What to run: words, the folder to run in, variables to set, how to tell of a new width, the widest."""

    words: Sequence[str]
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    on_resize: str | None = None
    max_cores: int | None = None


class Ending(NamedTuple):
    """How a program ended; a negative code is a signal, None says that it was never started."""

    outcome: Literal["finished", "failed", "cancelled"]
    exit_code: int | None


class _Cancel(NamedTuple):
    """Someone wants the program to end."""


class _GiveUp(NamedTuple):
    """There is no broker that would ever start the program."""


class _Ended(NamedTuple):
    """The program has ended."""

    exit_code: int


class Used(NamedTuple):
    """Fewer cores are in use than before, without an order having come."""

    cores: int


class ProgramClient:
    """One program between a broker and the system; `run` returns when it has ended."""

    def __init__(self, command: Command, folder: JobFolder) -> None:
        self._command, self._folder = command, folder
        self._news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._number = -1
        self._in_use = 0
        self._held = HeldCores()
        self._cpus: tuple[int, ...] = ()
        self._program: Program | None = None
        self.started_at: float | None = None
        self._seat: Membership | None = None
        self._cancelled = False

    @property
    def started(self) -> bool:
        """Whether the command was started."""
        return self._program is not None

    def on_order(self, order: Order) -> None:
        """Have an order carried out."""
        self._news.put(order)

    def on_cancel(self) -> None:
        """Have the program end, or not start."""
        self._news.put(_Cancel())

    def give_up(self) -> None:
        """Have `run` return None, unless the program was started."""
        self._news.put(_GiveUp())

    def run(self, seat: Membership) -> Ending | None:
        """Carry orders out until the program has ended; one that cannot be started is an `ExecutionError`."""
        self._seat = seat
        try:
            while True:
                news = self._news.get()
                match news:
                    case _Ended(code):
                        return self._ending(code)
                    case _Cancel():
                        self._cancelled = True
                        if self._program is None:
                            return Ending("cancelled", None)
                        self._program.cancel()
                    case _GiveUp():
                        if self._program is None:
                            return None
                    case Used(cores):
                        self._note_use(min(cores, self._in_use))
                    case order if order.number >= self._number:
                        self._obey(order)
        finally:
            self._close()

    def _ending(self, code: int) -> Ending:
        if code == 0:
            return Ending("finished", code)
        return Ending("cancelled" if self._cancelled else "failed", code)

    def _obey(self, order: Order) -> None:
        self._number, self._cpus = order.number, order.cpus
        if self._program is not None:
            if order.cores >= self._in_use:
                self._note(order.cores)
            self._in_use = self._resize(self._program, order.cores)
        elif order.cores > 0:
            self._note(order.cores)
            try:
                self._start(order.cores)
            except OSError as error:  # a full disk: its turn is not lost
                LOGGER.warning("cannot start yet: %s", error)
                threading.Timer(RETRY_SECONDS, self._news.put, (order,)).start()
                return
            self._in_use = order.cores
        self._confirm()

    def _note(self, cores: int) -> None:
        """Write down the cores that may be in use from now on."""
        self._held = self._held.then(cores, self._cpus[:cores], time.time())
        self._folder.note_held(self._held)

    def _note_use(self, cores: int) -> None:
        """Fewer cores are in use than before, which the program has seen to."""
        if self._program is not None and 0 < cores < self._in_use:
            self._program.set_width(cores, self._first_cpus(cores))
            self._in_use = cores
            self._confirm()

    def _confirm(self) -> None:
        if self._in_use != self._held.cores or self._cpus[: self._in_use] != self._held.cpus:
            self._note(self._in_use)
        if self._seat is not None:
            self._seat.confirm(self._in_use, self._number)

    def _start(self, cores: int) -> None:
        """Start the command; that it is about to be is noted before, so that it is not done twice."""
        if not self._folder.mark_started():
            raise ExecutionError("the command was started before", "submit it again to have it run again")
        self._program = self._make_program(cores)
        self.started_at = time.time()
        self._folder.note_program(self._program.pid)

    def _make_program(self, cores: int, **options: Any) -> Program:
        return Program(
            self._command.words,
            self._folder.path,
            cores,
            cpus=self._first_cpus(cores),
            working_folder=self._command.folder,
            on_resize=self._command.on_resize,
            on_progress=self._report,
            on_end=lambda code: self._news.put(_Ended(code)),
            errors_apart=True,
            **{"environment": self._environment(), **options},
        )

    def _environment(self) -> dict[str, str]:
        """Libraries fix their number of threads at the start: as many as the program can ever have cores."""
        there = len(os.sched_getaffinity(0))
        widest = dict.fromkeys(VARIABLES, str(min(there, self._command.max_cores or there)))
        return {**widest, **INSIDE_PROGRAM, **self._command.environment}

    def _resize(self, program: Program, cores: int) -> int:
        """Have the program use so many cores; returns how many it uses now."""
        program.set_width(cores, self._first_cpus(cores))
        return cores

    def _first_cpus(self, cores: int) -> Sequence[int]:
        """The CPUs to run on: any, where cores are numbers only."""
        return self._cpus[: max(cores, 1)] or sorted(os.sched_getaffinity(0))

    def _report(self, progress: Progress) -> None:
        if self._seat is not None:
            self._seat.progress(progress.done, progress.total)

    def _close(self) -> None:
        """Nothing is left to be done for a program."""
