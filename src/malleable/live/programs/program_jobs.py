"""The broker's side of submitted programs: they wait, are started once, outlive the broker, and end once.

    programs = ProgramJobs(broker, Store(folder), folder, socket_path)
    programs.recover()                        # what an earlier broker left
    job = programs.submit(ProgramRequest(("make",), "/home/me/project"))

A program is a job of the broker from the moment it is accepted. At its first grant its supervisor is started
(`live.programs.supervisor`), which connects to the broker, shows the ticket of the job and takes its orders
over (`attach`). While no supervisor is attached orders wait here, and a program that was not started uses no
core.

What a user has to know of a program is in the store; what is true of it stands in its folder.
"""

from __future__ import annotations

import hmac
import shlex
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from malleable.live.broker.operator_log import LOGGER, entry
from malleable.live.broker.state.schema import StoreError
from malleable.live.broker.state.store import PRESENT
from malleable.live.core.events import Cancelled, Confirmed, Ended, Progressed, Tick
from malleable.live.core.orders import Order, RefusedError
from malleable.live.programs.job_folder import HeldCores, JobFolder, Result
from malleable.live.programs.program_processes import RETRY_SECONDS, ProgramProcesses
from malleable.live.programs.program_run import ProgramRun
from malleable.live.programs.retention import KEEP, Keep, Retention
from malleable.live.system.listeners import tell
from malleable.live.system.process_tree import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from malleable.live.broker.broker import Broker
    from malleable.live.broker.state.request import ProgramRequest
    from malleable.live.broker.state.store import Store, StoredJob
    from malleable.live.core.events import Event

MOST_QUEUED = 100_000
SETTLE_SECONDS = 2.0
"""Seconds from counting running programs again to starting queued ones: Executors may be on their way."""
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
        keep: Keep = KEEP,
        most_output: int | None = None,
    ) -> None:
        self._broker, self._store, self._folder = broker, store, folder
        self._most_queued = most_queued
        self._runs: dict[str, ProgramRun] = {}
        self._lock = threading.RLock()
        self._draining = False
        self._processes = ProgramProcesses(broker, store, socket_path, self._forget, most_output)
        self._retention = Retention(store, folder / "jobs", keep, self._processes.loop)

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
            self._forget(run)
            self._store.remove(run.job)
            raise
        known = {"class": request.job_class, "folder": request.folder, "command": shlex.join(request.command)}
        LOGGER.info(entry("submitted", job=run.job, **known))
        return run.job

    def cancel(self, job: str) -> None:
        """Have a program end, or not start; `RefusedError` where there is none that has not ended."""
        run = self._runs.get(job)
        if run is None or run.over:
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

    def cpu_seconds(self, job: str) -> float | None:
        """CPU time that a program has used; None before its start, and when it is lost."""
        stored = self._store.get(job)
        if stored is not None and stored.cpu_seconds is not None:
            return stored.cpu_seconds
        folder = self._job_folder(job)
        with suppress(OSError):  # no file to be had
            result, process = folder.result(), folder.program()
            if result is not None:
                return result.cpu_seconds
            if process is not None and process.process() is not None:
                supervisor = folder.supervisor()
                return cpu_seconds(process.pid, None if supervisor is None else supervisor.pid)
        return None

    @property
    def present(self) -> int:
        """How many programs have not ended; after `drain`, of those that were started."""
        return len(self._runs)

    def close(self) -> None:
        """End its thread; programs and their supervisors go on."""
        self._processes.close()

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
            order = run.last.order or Order(job, 0, 0)
        self._processes.adopt(run)
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
            self._processes.note_running(run)
        elif isinstance(event, Ended):
            self._processes.look_for_result(run)

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
            run.running = run.folder.started or stored.state == "running"
            found = run.condition()
            if found in {"ended", "lost", "replaced"}:
                self._processes.look_for_result(run)
                continue
            if run.folder.held().cores > 0 and found == "supervised":
                self._join(run, run.folder.held())
                self._processes.adopt(run)
            else:
                waiting.append(run)
        running = len(self._runs) > len(waiting)
        self._processes.loop.later(SETTLE_SECONDS if running else 0.0, self._join_next, waiting[::-1])
        self._retention.start()

    def _join_next(self, waiting: list[ProgramRun]) -> None:
        """Have the programs that wait join, one at a time: what else there is to do comes in between."""
        if not waiting:
            with suppress(RefusedError):
                self._broker.tell(Tick())  # now cores may be divided anew
            return
        run = waiting.pop()
        if not run.over:
            try:
                self._join(run, run.folder.held() if run.running else HeldCores())
            except RefusedError as error:  # the workload or the memory is another than when it was accepted
                self._processes.end(run, Result("failed", reason=error.sentence))
            except OSError as error:  # no file to be had
                LOGGER.warning("cannot look at program %s yet: %s", run.job, error)
                self._processes.loop.later(RETRY_SECONDS, self._join_next, [*waiting, run])
                return
        self._processes.adopt(run)
        self._processes.loop.soon(self._join_next, waiting)

    def _add(self, stored: StoredJob) -> ProgramRun:
        # Variables may be many: thousands of queued programs are better kept without.
        lean = replace(stored, request=replace(stored.request, environment={}))
        run = ProgramRun(lean, self._job_folder(stored.job), cancel_asked=stored.cancel_asked)
        with self._lock:
            self._runs[run.job] = run
        return run

    def _forget(self, run: ProgramRun) -> None:
        with self._lock:
            self._runs.pop(run.job, None)

    def _job_folder(self, job: str) -> JobFolder:
        return JobFolder(self._folder / "jobs" / job)

    def _join(self, run: ProgramRun, held: HeldCores) -> None:
        workload, age = self._broker.scheduler.beliefs.workload, self._store.age(run.stored)
        event = run.registered(workload, held, age)
        self._broker.join(event, partial(self._on_order, run), partial(self._cancel, run), held.cpus)
        if run.stored.units_done > 0.0:
            with suppress(RefusedError):
                self._broker.tell(Progressed(run.job, run.stored.units_done, run.stored.units))
        if run.cancel_asked:
            self._processes.cancel(run)

    # What the broker says.

    def _on_order(self, run: ProgramRun, order: Order) -> None:
        with self._lock:
            if not run.last.take(order):
                return
            listener = run.on_order
        if listener is not None:
            tell(listener, order)
        elif not run.running:
            self._processes.order(run)

    def _cancel(self, run: ProgramRun) -> None:
        run.cancel_asked = True
        with suppress(StoreError):  # on a full disk it is cancelled all the same
            self._store.mark_cancel_asked(run.job)
        self._processes.cancel(run)
