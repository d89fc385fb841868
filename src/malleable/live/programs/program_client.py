"""Any program as a job of a broker: it starts at the first grant, follows its orders, and ends once.

    client = ProgramClient(command, folder)
    seat = join(JobRequest("etl"), client.obey, client.cancel)
    ending = client.run(seat)

Orders come from any thread and are carried out one after the other, in the thread of `run`. The cores in use
are noted in the folder before more are used and after fewer are, so that whoever reads it, at any moment and
without asking, knows at least the cores that are in use.
"""

from __future__ import annotations

import logging
import os
import queue
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.errors import ExecutionError
from malleable.execution.thread_variables import VARIABLES
from malleable.live.broker.membership import INSIDE_PROGRAM
from malleable.live.core.orders import LastOrder, Order
from malleable.live.programs.job_folder import HeldCores
from malleable.live.programs.program import Program
from malleable.live.programs.standard_input import open_offered
from malleable.live.programs.turns import LOOK_SECONDS

if TYPE_CHECKING:
    from typing import Literal

    from malleable.live.broker.membership import Membership
    from malleable.live.programs.job_folder import JobFolder
    from malleable.live.programs.progress import Progress
    from malleable.live.programs.turns import Turn

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
"""Seconds between two attempts at what the machine refuses."""


@dataclass(frozen=True)
class Command:
    """What to run: words, the folder to run in, variables to set, how to tell of a new width, the widest.

    It reads `stdin`, which must be `stdin_file`: see `live.programs.standard_input`. Of each stream that it
    prints to about `most_output` bytes are kept.
    """

    words: Sequence[str]
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    on_resize: str | None = None
    max_cores: int | None = None
    stdin: str | None = None
    stdin_file: Sequence[int] | None = None
    most_output: int | None = None


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


class WidthChanged(NamedTuple):
    """The number of cores in use has changed without an order having come.

    How many there are is asked when this is read: an order that was read before may have changed it again.
    """


class ProgramClient:
    """One program between a broker and the system; `run` returns when it has ended.

    `reaper` is the number of this process if it adopts orphans: it must have nothing else to do then. With a
    `turn` a paused program goes on when there is no broker.
    """

    def __init__(
        self, command: Command, folder: JobFolder, reaper: int | None = None, turn: Turn | None = None
    ) -> None:
        self._command, self._folder, self._reaper, self._turn = command, folder, reaper, turn
        self._news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last = LastOrder()
        self._in_use = 0
        self._last_width = 1
        """Before it was paused."""
        self._held = HeldCores()
        self._cpus: tuple[int, ...] = ()
        self._program: Program | None = None
        self.started_at: float | None = None
        self._started = 0.0
        self._seat: Membership | None = None
        self._cancelled = False
        self._again: Order | None = None
        """What the machine has refused, and is tried again."""
        self._problem = ""

    @property
    def started(self) -> bool:
        """Whether the command was started."""
        return self._program is not None

    def time_now(self) -> float:
        """The system's clock, as it would be had nobody set it since the command was started."""
        if self.started_at is None:
            return time.time()
        return self.started_at + time.monotonic() - self._started

    def obey(self, order: Order) -> None:
        """Have an order carried out."""
        self._news.put(order)

    def cancel(self) -> None:
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
                match self._next_news():
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
                    case WidthChanged():
                        self._note_use(self._cores_in_use())
                    case Order() as order if self._last.take(order):
                        self._again = None
                        try:
                            self._carry_out(order)
                        except OSError as error:  # its turn is not lost, or it goes on as it is
                            self._again = order
                            self._complain(f"cannot follow an order yet: {error}")
        finally:
            self._close()

    def _next_news(self) -> Any:
        """What is to be done next: news, or after a while what could not be done.

        A program that is paused goes on meanwhile if there is no broker.
        """
        while (turn := self._turn) and (program := self._program) and not self._in_use:
            with suppress(queue.Empty):
                return self._news.get(timeout=LOOK_SECONDS)
            if self._again is not None:
                return self._again
            try:
                self._take_turn(turn, program)
            except OSError as error:
                self._complain(f"cannot go on without a broker yet: {error}")
        if self._turn is not None:
            self._turn.forget()
        try:
            return self._news.get(timeout=None if self._again is None else RETRY_SECONDS)
        except queue.Empty:
            return self._again

    def _take_turn(self, turn: Turn, program: Program) -> None:
        with turn.taken(self._last_width) as share:
            if share is not None:
                LOGGER.warning("there is no broker: going on with cores=%s", share.cores)
                self._cpus = share.cpus
                self._note(share.cores)
                self._in_use = self._resize(program, share.cores)
                self._confirm()

    def _complain(self, problem: str) -> None:
        """Log a problem, once as long as it is the same."""
        if problem != self._problem:
            self._problem = problem
            LOGGER.warning("%s", problem)

    def _ending(self, code: int) -> Ending:
        if code == 0:
            return Ending("finished", code)
        return Ending("cancelled" if self._cancelled else "failed", code)

    def _carry_out(self, order: Order) -> None:
        self._cpus = order.cpus
        if self._program is not None:
            self._last_width = self._in_use or self._last_width
            if order.cores >= self._in_use:
                self._note(order.cores)
            self._in_use = self._resize(self._program, order.cores)
        elif order.cores > 0:
            self._note(order.cores)
            self._start(order.cores)
            self._in_use = order.cores
        self._confirm()

    def _note(self, cores: int) -> None:
        """Write down the cores that may be in use from now on."""
        self._held = self._held.then(cores, self._cpus[:cores], time.monotonic())
        self._folder.note_held(self._held)

    def _note_use(self, cores: int) -> None:
        """Fewer cores are in use than before, which the program has seen to."""
        if self._program is not None and 0 < cores < self._in_use:
            with suppress(OSError):  # it is bound to more CPUs than it uses
                self._program.set_width(cores, self._first_cpus(cores))
            self._in_use = cores
            self._confirm()

    def _confirm(self) -> None:
        if self._in_use != self._held.cores or self._cpus[: self._in_use] != self._held.cpus:
            self._note(self._in_use)
        if self._seat is not None:
            self._seat.confirm(self._in_use, self._last.number)

    def _start(self, cores: int) -> None:
        """Start the command; that it is about to be is noted before, so that it is not done twice."""
        known = self._command
        stdin = None if known.stdin is None else open_offered(known.stdin, known.stdin_file)
        try:
            if not self._folder.mark_started():
                raise ExecutionError("the command was started before", "submit it again to have it run again")
            try:
                self._program = self._make_program(cores, stdin=stdin)
            except OSError:
                self._folder.unmark_started()
                raise
        finally:
            if stdin is not None:
                os.close(stdin)
        self.started_at, self._started = time.time(), time.monotonic()
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
            reaper=self._reaper,
            most_output=self._command.most_output,
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

    def _cores_in_use(self) -> int:
        """How many cores the program uses at this moment; it may use fewer on its own."""
        return self._in_use

    def _first_cpus(self, cores: int) -> Sequence[int]:
        """The CPUs to run on: any, where cores are numbers only."""
        return self._cpus[: max(cores, 1)] or sorted(os.sched_getaffinity(0))

    def _report(self, progress: Progress) -> None:
        if self._seat is not None:
            self._seat.progress(progress.done, progress.total)

    def _close(self) -> None:
        """Nothing is left to be done for a program."""
