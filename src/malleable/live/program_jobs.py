"""The broker's side of submitted programs: they wait, are started once, outlive the broker, and end once.

    programs = ProgramJobs(broker, Store(folder), folder / "jobs", socket_path)
    programs.recover()                        # what an earlier broker left
    job = programs.submit(ProgramRequest(("make",), "/home/me/project"))

A program is a job of the broker from the moment it is accepted. At its first grant its supervisor is started
(`live.supervisor`), which connects to the broker, shows the ticket of the job and takes its orders over
(`attach`). While no supervisor is attached orders wait here, and a program that was not started uses no core.

What is true of a program stands in its folder (`live.job_folder`); what a user has to know of it is in the
store. All that waits for a disk or for a process happens in one thread, the loop.
"""

from __future__ import annotations

import hmac
import logging
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from malleable.live.events import KINDS, Cancelled, Confirmed, Ended, Progressed, Tick
from malleable.live.job_folder import HeldCores, JobFolder, ProcessName
from malleable.live.listeners import tell
from malleable.live.loop_thread import LoopThread
from malleable.live.orders import Order, RefusedError
from malleable.live.program_run import ProgramRun, condition
from malleable.live.state.schema import StoreError
from malleable.live.state.store import PRESENT
from malleable.live.supervisor import NOT_NEEDED
from malleable.live.supervisor_process import ask_to_end, end_leftovers, log_end, start_supervisor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from malleable.live.broker import Broker
    from malleable.live.events import Event
    from malleable.live.state.request import ProgramRequest
    from malleable.live.state.store import Outcome, Store, StoredJob

LOGGER = logging.getLogger(__name__)
MOST_QUEUED = 100_000
SETTLE_SECONDS = 2.0
"""Seconds from counting running programs again to starting queued ones: Executors may be on their way."""
RETRY_SECONDS = 1.0
"""Seconds between two attempts at what a disk refuses, or at a supervisor that does not come up."""
MOST_ATTEMPTS = 3
"""Supervisors that are started for one program, if they end before they start it."""
FILES = {"out": "output", "err": "errors"}


class ProgramJobs:
    """Submitted programs as jobs of a broker; `recover` is called once, before anything else.

    Names of jobs are numbers (`"17"`), which no other client may take.
    """

    def __init__(
        self,
        broker: Broker,
        store: Store,
        folder: Path,
        socket_path: Path,
        *,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._broker, self._store, self._folder, self._socket = broker, store, folder, socket_path
        self._most_queued = most_queued
        self._runs: dict[str, ProgramRun] = {}
        self._lock = threading.RLock()
        self._draining = False
        self._loop = LoopThread("malleable-programs")

    # What users ask for.

    def submit(self, request: ProgramRequest) -> str:
        """Accept a program; it is on the disk and queued at the broker when this returns its name.

        Raises `RefusedError` (unknown class, too much memory, draining, queue full) and `StoreError`.
        """
        if self._draining:
            raise RefusedError("the broker accepts no programs any more", "it is being drained")
        if len(self._runs) >= self._most_queued:
            raise RefusedError(f"there are {len(self._runs)} programs already", "wait until some have ended")
        run = self._add(self._store.add(request))
        try:
            self._join(run, HeldCores())
        except RefusedError:
            with self._lock:
                self._runs.pop(run.job, None)
            self._store.remove(run.job)
            raise
        return run.job

    def cancel(self, job: str) -> None:
        """Have a program end, or not start; `RefusedError` where there is none that has not ended."""
        run = self._runs.get(job)
        if run is None:
            raise RefusedError(f"there is no program {job!r} that has not ended")
        self._cancel(run)

    def drain(self) -> None:
        """Accept no program, and start no queued one: those wait for the next broker. What runs goes on."""
        with self._lock:
            self._draining = True
            waiting = [run for run in self._runs.values() if not run.supervisor and not run.running]
            for run in waiting:
                run.gone = True
                del self._runs[run.job]
        for run in waiting:
            with suppress(RefusedError):
                self._broker.tell(Cancelled(run.job))

    def output(self, job: str, stream: Literal["out", "err"]) -> Path | None:
        """The file with what a program has printed; None while there is none, and for what is no program."""
        stored = self._store.get(job)
        path = None if stored is None else self._job_folder(stored.job).path / FILES[stream]
        return path if path is not None and path.is_file() else None

    @property
    def present(self) -> int:
        """How many programs have not ended; after `drain`, of those that were started."""
        return len(self._runs)

    def close(self) -> None:
        """End the loop; programs and their supervisors go on."""
        self._loop.close()

    # What supervisors say, through their sessions.

    def attach(
        self, job: str, ticket: str, on_order: Callable[[Order], None], on_cancel: Callable[[], None]
    ) -> Order:
        """A supervisor is there: from now on orders go to it, beginning with the one returned.

        `RefusedError` for a wrong ticket or a job that is not there. A second supervisor takes the place of
        the first, whose connection may not have been noticed to be dead yet.
        """
        with self._lock:
            run = self._runs.get(job)
            if run is None or not hmac.compare_digest(run.stored.ticket.encode(), ticket.encode()):
                raise RefusedError(f"there is no program {job!r} with this ticket")
            run.on_order, run.on_cancel = on_order, on_cancel
            order = run.order or Order(job, 0, 0)
        self._loop.soon(self._adopt, run)
        if run.cancel_asked:
            on_cancel()
        return order

    def detach(self, job: str, on_order: Callable[[Order], None]) -> None:
        """A supervisor's connection has ended: while its process lives, its job keeps its cores."""
        with self._lock:
            run = self._runs.get(job)
            if run is not None and run.on_order == on_order:
                run.on_order = run.on_cancel = None

    def tell(self, event: Event) -> None:
        """What an attached supervisor says; as `Broker.tell`, and kept in the store."""
        self._broker.tell(event)
        run = self._runs.get(getattr(event, "job", ""))
        if run is None:
            return
        if isinstance(event, Progressed):
            self._store.progress(run.job, event.units_done, event.units)
        elif isinstance(event, Confirmed) and event.cores > 0 and not run.running:
            run.running = True
            self._loop.soon(self._note_running, run)
        elif isinstance(event, Ended):
            self._loop.soon(self._look_for_result, run)

    # After a restart.

    def recover(self) -> None:
        """Count again what an earlier broker left.

        Programs that run keep their cores from this moment on, whether or not their supervisors have come
        back; those that ended meanwhile are noted; those that wait, wait again, and a little longer if others
        run, so that Executors can come back before their cores are given away.
        """
        waiting = []
        for stored in self._store.jobs(PRESENT):
            run = self._add(stored)
            found = condition(run.folder)
            if found in {"ended", "lost"}:
                self._loop.soon(self._look_for_result, run)
                continue
            run.running = run.folder.started
            if run.folder.held().cores > 0 and found == "supervised":
                self._join(run, run.folder.held())
                self._loop.soon(self._adopt, run)
            else:
                waiting.append(run)
        running = len(self._runs) > len(waiting)
        self._loop.later(SETTLE_SECONDS if running else 0.0, self._join_next, waiting[::-1])

    def _join_next(self, waiting: list[ProgramRun]) -> None:
        """Have the programs that wait join, one at a time: what else there is to do comes in between."""
        if not waiting:
            with suppress(RefusedError):
                self._broker.tell(Tick())  # now cores may be divided anew
            return
        run = waiting.pop()
        if not run.gone:
            try:
                self._join(run, run.folder.held())
            except RefusedError as error:  # the workload or the memory is another than when it was accepted
                self._end(run, "failed", reason=error.sentence)
        self._loop.soon(self._adopt, run)
        self._loop.soon(self._join_next, waiting)

    def _add(self, stored: StoredJob) -> ProgramRun:
        run = ProgramRun(stored, self._job_folder(stored.job), cancel_asked=stored.cancel_asked)
        with self._lock:
            self._runs[run.job] = run
        return run

    def _job_folder(self, job: str) -> JobFolder:
        return JobFolder(self._folder / job)

    def _join(self, run: ProgramRun, held: HeldCores) -> None:
        event = run.registered(self._broker.scheduler.beliefs.workload, held)
        self._broker.join(event, partial(self._on_order, run), partial(self._cancel, run), held.cpus)
        if run.stored.units_done > 0.0:
            with suppress(RefusedError):
                self._broker.tell(Progressed(run.job, run.stored.units_done, run.stored.units))
        if run.cancel_asked:
            self._loop.soon(self._carry_out_cancel, run)

    # What the broker says.

    def _on_order(self, run: ProgramRun, order: Order) -> None:
        with self._lock:
            if run.order is not None and order.number < run.order.number:
                return
            run.order, listener = order, run.on_order
        if listener is not None:
            tell(listener, order)
        elif not run.running:
            self._loop.soon(self._carry_out_order, run)

    def _cancel(self, run: ProgramRun) -> None:
        run.cancel_asked = True
        with suppress(StoreError):  # on a full disk it is cancelled all the same
            self._store.mark_cancel_asked(run.job)
        self._loop.soon(self._carry_out_cancel, run)

    # All that follows happens in the loop.

    def _carry_out_order(self, run: ProgramRun) -> None:
        """Start the supervisor of a program that may run; one that may not yet uses no core."""
        order = run.order
        if run.gone or run.running or run.on_order is not None or order is None:
            return
        if order.cores == 0:
            with suppress(RefusedError):
                self._broker.tell(Confirmed(run.job, 0, order.number))
        elif run.supervisor is None:
            self._start(run)

    def _start(self, run: ProgramRun) -> None:
        request, stored = run.stored.request, run.stored
        document = {
            **request.parameters(), "job": run.job, "ticket": stored.ticket, "socket": str(self._socket),
            "job_class": request.job_class,
        }  # fmt: skip
        try:
            run.folder.prepare(document)
            pid = start_supervisor(run.folder)
        except OSError as error:  # a full disk, or no process to be had: its turn is not lost
            LOGGER.warning("cannot start program %s yet: %s", run.job, error)
            self._loop.later(RETRY_SECONDS, self._carry_out_order, run)
            return
        self._watch(run, ProcessName.of(pid) or ProcessName(pid, 0, ""))

    def _adopt(self, run: ProgramRun) -> None:
        """See to the supervisor that has the lock, whoever started it."""
        found = None if run.gone else run.folder.supervisor()
        if found is not None and found != run.supervisor:
            self._watch(run, found)

    def _watch(self, run: ProgramRun, name: ProcessName) -> None:
        run.supervisor = name
        self._loop.when_ended(name.pid, partial(self._supervisor_ended, run, name))

    def _supervisor_ended(self, run: ProgramRun, name: ProcessName, code: int | None) -> None:
        if run.gone or run.supervisor != name:
            return
        run.supervisor = None
        if condition(run.folder) == "supervised":  # by one that an earlier broker started
            self._adopt(run)
        elif condition(run.folder) == "waiting":
            self._try_again(run, code)
        else:
            self._look_for_result(run)

    def _try_again(self, run: ProgramRun, code: int | None) -> None:
        """A supervisor has ended before it has started its program."""
        with self._lock:
            run.on_order = run.on_cancel = None
        if run.cancel_asked:
            self._end(run, "cancelled")
            return
        run.attempts += code != NOT_NEEDED
        if run.attempts >= MOST_ATTEMPTS:
            self._end(run, "failed", reason=f"its supervisor ended with {code}: {log_end(run.folder)}")
            return
        self._loop.later(RETRY_SECONDS, self._carry_out_order, run)

    def _carry_out_cancel(self, run: ProgramRun) -> None:
        if run.gone:
            return
        if run.on_cancel is not None:
            run.on_cancel()
        elif run.supervisor is not None:
            ask_to_end(run.supervisor)
        elif not run.running:
            self._end(run, "cancelled")

    def _note_running(self, run: ProgramRun) -> None:
        if run.supervisor is not None and not run.gone:
            with suppress(StoreError):  # the folder says it too
                self._store.mark_started(run.job, *run.supervisor)

    def _look_for_result(self, run: ProgramRun) -> None:
        """End a program that has left a result, or a supervisor that is gone without one."""
        found = "supervised" if run.gone else condition(run.folder)
        result = run.folder.result()
        if result is not None and not run.gone:
            self._end(run, result.outcome, result.exit_code, result.ended, result.reason)
        elif found == "lost":
            end_leftovers(run.folder)
            self._end(run, "lost", reason="its supervisor was killed")

    def _end(
        self,
        run: ProgramRun,
        outcome: Outcome,
        code: int | None = None,
        ended: float | None = None,
        reason: str = "",
    ) -> None:
        """A program has ended: its cores are free at once, and it is noted as soon as the disk allows."""
        with suppress(RefusedError):  # it may have said so itself
            self._broker.tell(KINDS[outcome].from_parameters({"job": run.job}))
        try:
            self._store.mark_ended(run.job, outcome, code, ended, reason)
        except StoreError as error:
            LOGGER.warning("cannot note the end of program %s yet: %s", run.job, error)
            self._loop.later(RETRY_SECONDS, self._end, run, outcome, code, ended, reason)
            return
        with self._lock:
            run.gone = True
            self._runs.pop(run.job, None)
