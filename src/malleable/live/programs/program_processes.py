"""The processes of submitted programs: their supervisors are started, watched, adopted, and their ends noted.

All of it happens in one thread, as it waits for disks and for processes; methods hand it over. What is true
of a program stands in its folder (`live.programs.job_folder`), whoever started it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from malleable.live.broker.operator_log import entry
from malleable.live.broker.state.schema import StoreError
from malleable.live.core.events import KINDS, Confirmed
from malleable.live.core.orders import RefusedError
from malleable.live.programs.job_folder import ProcessName, Result
from malleable.live.programs.supervisor import NOT_NEEDED
from malleable.live.programs.supervisor_process import ask_to_end, end_leftovers, log_end
from malleable.live.programs.supervisor_server import SupervisorServer
from malleable.live.system.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from malleable.live.broker.broker import Broker
    from malleable.live.broker.state.store import Store
    from malleable.live.programs.program_run import ProgramRun

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
"""Seconds between two attempts at what a disk refuses, or at a supervisor that does not come up."""
MOST_ATTEMPTS = 3
"""Supervisors that are started for one program, if they end before they start it."""


class ProgramProcesses:
    """Sees to the supervisors of programs; `on_gone` is called when a program has ended and that is noted."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        socket_path: Path,
        on_gone: Callable[[ProgramRun], None],
        most_output: int | None = None,
    ) -> None:
        self._broker, self._store, self._socket, self._on_gone = broker, store, socket_path, on_gone
        self._most_output = most_output
        self.loop = LoopThread("malleable-programs")
        self._supervisors = SupervisorServer()

    def close(self) -> None:
        """End the thread; programs and their supervisors go on."""
        self.loop.close()
        self._supervisors.close()

    def order(self, run: ProgramRun) -> None:
        """An order has come for a program that has no supervisor yet."""
        self.loop.soon(self._do, self._carry_out_order, run)

    def cancel(self, run: ProgramRun) -> None:
        """A program is to end, or not to start."""
        self.loop.soon(self._do, self._carry_out_cancel, run)

    def adopt(self, run: ProgramRun) -> None:
        """A program may have a supervisor that another broker has started."""
        self.loop.soon(self._do, self._adopt, run)

    def note_running(self, run: ProgramRun) -> None:
        """A program uses cores for the first time."""
        self.loop.soon(self._do, self._note_running, run)

    def look_for_result(self, run: ProgramRun) -> None:
        """A program may have ended."""
        self.loop.soon(self._do, self._look_for_result, run)

    # All that follows happens in the loop.

    def _do(self, step: Callable[..., None], run: ProgramRun, *arguments: Any) -> None:
        """Take a step, again and again while the machine refuses it: no turn is lost to a full disk."""
        try:
            step(run, *arguments)
        except OSError as error:
            LOGGER.warning("cannot go on with program %s yet: %s", run.job, error)
            self._store.explain(run.job, f"it cannot be started yet: {error.strerror or error}")
            self.loop.later(RETRY_SECONDS, self._do, step, run, *arguments)
        else:
            self._store.explain(run.job, "")

    def _carry_out_order(self, run: ProgramRun) -> None:
        """Start the supervisor of a program that may run; one that may not yet uses no core."""
        order = run.last.order
        if run.over or run.running or run.on_order is not None or order is None:
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
        run.folder.prepare(self._to_supervisor(run))
        pid = self._supervisors.start(run.folder)
        self._watch(run, ProcessName.of(pid) or ProcessName(pid, 0, ""))

    def _to_supervisor(self, run: ProgramRun) -> dict[str, Any]:
        """What a supervisor has to know; the variables of its program are in the store only."""
        stored = self._store.get(run.job)
        request = (stored or run.stored).request
        return {
            **request.parameters(), "job": run.job, "ticket": run.stored.ticket, "socket": str(self._socket),
            "job_class": request.job_class, "most_output": self._most_output,
        }  # fmt: skip

    def _adopt(self, run: ProgramRun) -> None:
        """See to the supervisor that has the lock, whoever started it."""
        found = None if run.over else run.folder.supervisor()
        if found is not None and found != run.supervisor:
            self._watch(run, found)
            if run.running:
                self._note_running(run)

    def _watch(self, run: ProgramRun, name: ProcessName) -> None:
        run.supervisor = name
        self.loop.when_ended(name.pid, partial(self._supervisor_ended, run, name))

    def _supervisor_ended(self, run: ProgramRun, name: ProcessName) -> None:
        code = self._supervisors.reap(name.pid)
        if run.supervisor != name:
            return
        run.supervisor = None
        if run.gone and run.ending:
            self._do(self._tidy, run)
        self._do(self._go_on, run, code)

    def _go_on(self, run: ProgramRun, code: int | None) -> None:
        """See what a supervisor has left that is gone."""
        if run.over:
            return
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
        self.loop.later(RETRY_SECONDS, self._do, self._carry_out_order, run)

    def _carry_out_cancel(self, run: ProgramRun) -> None:
        if run.over:
            return
        if run.on_cancel is not None:
            run.on_cancel()
        elif run.supervisor is not None:
            ask_to_end(run.supervisor)
        elif not run.running:
            self.end(run, Result("cancelled"))

    def _note_running(self, run: ProgramRun) -> None:
        known = run.stored.pid, run.stored.start_time, run.stored.boot
        if run.supervisor is not None and not run.over and known != run.supervisor:
            LOGGER.info(entry("started", job=run.job, supervisor=run.supervisor.pid))
            with suppress(StoreError):  # the folder says it too
                self._store.mark_started(run.job, *run.supervisor)

    def _look_for_result(self, run: ProgramRun) -> None:
        """End a program that has left a result, or a supervisor that is gone without one."""
        if run.over:
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
        if not run.ending:
            run.ending = True
            with suppress(RefusedError):  # it may have said so itself
                self._broker.tell(KINDS[result.outcome].from_parameters({"job": run.job}))
            self._note_end(run, result)

    def _note_end(self, run: ProgramRun, result: Result) -> None:
        """Have it noted, together with others that end now: nothing else waits for the disk meanwhile."""
        self._store.mark_ended(
            run.job,
            result.outcome,
            result.exit_code,
            started=result.started,
            ended=result.ended,
            reason=result.reason,
            cpu_seconds=result.cpu_seconds,
            then=lambda error: self.loop.soon(self._end_noted, run, result, error),
        )

    def _end_noted(self, run: ProgramRun, result: Result, error: BaseException | None) -> None:
        if error is not None:
            LOGGER.warning("cannot note the end of program %s yet: %s", run.job, error)
            self.loop.later(RETRY_SECONDS, self._note_end, run, result)
            return
        run.gone = True
        LOGGER.info(entry(result.outcome, job=run.job, exit_code=result.exit_code, **_seconds(result)))
        self._on_gone(run)
        if run.supervisor is None:
            self._do(self._tidy, run)

    def _tidy(self, run: ProgramRun) -> None:
        """Remove what was needed only until the end was noted, unless the folder is another program's."""
        if run.folder.is_of(run.stored.ticket):
            run.folder.tidy()


def _seconds(result: Result) -> dict[str, object]:
    """How long a program was there once started, and why it ended, as far as that is known."""
    ran = None if result.started is None or result.ended is None else result.ended - result.started
    return {"seconds": ran, "reason": result.reason or None}
