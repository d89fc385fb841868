"""The processes of submitted programs: their supervisors are started, watched, adopted, and their ends noted.

All of it happens in one thread, as it waits for disks and for processes; methods hand it over. What is true
of a program stands in its folder (`live.job_folder`), whoever started it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from malleable.live.events import KINDS, Confirmed
from malleable.live.job_folder import ProcessName, Result
from malleable.live.loop_thread import LoopThread
from malleable.live.operator_log import entry
from malleable.live.orders import RefusedError
from malleable.live.state.schema import StoreError
from malleable.live.supervisor import NOT_NEEDED
from malleable.live.supervisor_process import ask_to_end, end_leftovers, log_end, start_supervisor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from malleable.live.broker import Broker
    from malleable.live.program_run import ProgramRun
    from malleable.live.state.store import Store

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
"""Seconds between two attempts at what a disk refuses, or at a supervisor that does not come up."""
MOST_ATTEMPTS = 3
"""Supervisors that are started for one program, if they end before they start it."""


class ProgramProcesses:
    """Sees to the supervisors of programs; `on_gone` is called when a program has ended and that is noted."""

    def __init__(
        self, broker: Broker, store: Store, socket_path: Path, on_gone: Callable[[ProgramRun], None]
    ) -> None:
        self._broker, self._store, self._socket, self._on_gone = broker, store, socket_path, on_gone
        self.loop = LoopThread("malleable-programs")

    def order(self, run: ProgramRun) -> None:
        """An order has come for a program that has no supervisor yet."""
        self.loop.soon(self._carry_out_order, run)

    def cancel(self, run: ProgramRun) -> None:
        """A program is to end, or not to start."""
        self.loop.soon(self._carry_out_cancel, run)

    def adopt(self, run: ProgramRun) -> None:
        """A program may have a supervisor that another broker has started."""
        self.loop.soon(self._adopt, run)

    def note_running(self, run: ProgramRun) -> None:
        """A program uses cores for the first time."""
        self.loop.soon(self._note_running, run)

    def look_for_result(self, run: ProgramRun) -> None:
        """A program may have ended."""
        self.loop.soon(self._look_for_result, run)

    # All that follows happens in the loop.

    def _carry_out_order(self, run: ProgramRun) -> None:
        """Start the supervisor of a program that may run; one that may not yet uses no core."""
        order = run.order
        if run.gone or run.running or run.on_order is not None or order is None:
            return
        if order.cores == 0:
            with suppress(RefusedError):
                self._broker.tell(Confirmed(run.job, 0, order.number))
        elif run.cancel_asked:
            self._carry_out_cancel(run)
        elif run.supervisor is None and run.condition() == "replaced":
            self._look_for_result(run)
        elif run.supervisor is None:
            self._start(run)

    def _start(self, run: ProgramRun) -> None:
        try:
            run.folder.prepare(self._to_supervisor(run))
            pid = start_supervisor(run.folder)
        except OSError as error:  # a full disk, or no process to be had: its turn is not lost
            LOGGER.warning("cannot start program %s yet: %s", run.job, error)
            self.loop.later(RETRY_SECONDS, self._carry_out_order, run)
            return
        self._watch(run, ProcessName.of(pid) or ProcessName(pid, 0, ""))

    def _to_supervisor(self, run: ProgramRun) -> dict[str, Any]:
        """What a supervisor has to know; the variables of its program are in the store only."""
        stored = self._store.get(run.job)
        request = (stored or run.stored).request
        return {
            **request.parameters(), "job": run.job, "ticket": run.stored.ticket, "socket": str(self._socket),
            "job_class": request.job_class,
        }  # fmt: skip

    def _adopt(self, run: ProgramRun) -> None:
        """See to the supervisor that has the lock, whoever started it."""
        found = None if run.gone else run.folder.supervisor()
        if found is not None and found != run.supervisor:
            self._watch(run, found)
            if run.running:
                self._note_running(run)

    def _watch(self, run: ProgramRun, name: ProcessName) -> None:
        run.supervisor = name
        self.loop.when_ended(name.pid, partial(self._supervisor_ended, run, name))

    def _supervisor_ended(self, run: ProgramRun, name: ProcessName, code: int | None) -> None:
        if run.gone or run.supervisor != name:
            return
        run.supervisor = None
        found = run.condition()
        if found == "supervised":  # by one that an earlier broker started
            self._adopt(run)
        elif found == "waiting":
            self._try_again(run, code)
        else:
            self._look_for_result(run)

    def _try_again(self, run: ProgramRun, code: int | None) -> None:
        """A supervisor has ended before it has started its program."""
        run.on_order = run.on_cancel = None
        if run.cancel_asked:
            self.end(run, Result("cancelled"))
            return
        run.attempts += code != NOT_NEEDED
        if run.attempts >= MOST_ATTEMPTS:
            reason = f"its supervisor ended with {code}: {log_end(run.folder)}"
            self.end(run, Result("failed", reason=reason))
            return
        self.loop.later(RETRY_SECONDS, self._carry_out_order, run)

    def _carry_out_cancel(self, run: ProgramRun) -> None:
        if run.gone:
            return
        if run.on_cancel is not None:
            run.on_cancel()
        elif run.supervisor is not None:
            ask_to_end(run.supervisor)
        elif not run.running:
            self.end(run, Result("cancelled"))

    def _note_running(self, run: ProgramRun) -> None:
        known = run.stored.pid, run.stored.start_time, run.stored.boot
        if run.supervisor is not None and not run.gone and known != run.supervisor:
            LOGGER.info(entry("started", job=run.job, supervisor=run.supervisor.pid))
            with suppress(StoreError):  # the folder says it too
                self._store.mark_started(run.job, *run.supervisor)

    def _look_for_result(self, run: ProgramRun) -> None:
        """End a program that has left a result, or a supervisor that is gone without one."""
        if run.gone:
            return
        found = run.condition()
        result = None if found == "replaced" else run.folder.result()
        if result is not None:
            self.end(run, result)
        elif found == "replaced":
            reason = f"{run.folder.path} belongs to another program: submit it again"
            self.end(run, Result("failed", reason=reason))
        elif found == "lost":
            end_leftovers(run.folder)
            self.end(run, Result("lost", reason="its supervisor was killed"))

    def end(self, run: ProgramRun, result: Result) -> None:
        """A program has ended: its cores are free at once, and it is noted as soon as the disk allows."""
        with suppress(RefusedError):  # it may have said so itself
            self._broker.tell(KINDS[result.outcome].from_parameters({"job": run.job}))
        times = {"started": result.started, "ended": result.ended}
        try:
            self._store.mark_ended(run.job, result.outcome, result.exit_code, **times, reason=result.reason)
        except StoreError as error:
            LOGGER.warning("cannot note the end of program %s yet: %s", run.job, error)
            self.loop.later(RETRY_SECONDS, self.end, run, result)
            return
        run.gone = True
        LOGGER.info(entry(result.outcome, job=run.job, exit_code=result.exit_code, **_seconds(result)))
        self._on_gone(run)


def _seconds(result: Result) -> dict[str, object]:
    """How long a program was there once started, and why it ended, as far as that is known."""
    ran = None if result.started is None or result.ended is None else result.ended - result.started
    return {"seconds": ran, "reason": result.reason or None}
