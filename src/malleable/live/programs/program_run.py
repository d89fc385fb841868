"""A program that was submitted and has not ended, as the broker knows it, and what its folder says of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from malleable.live.broker.state.store import StoredJob
from malleable.live.core.orders import LastOrder, Order
from malleable.live.core.unknown_jobs import UNKNOWN
from malleable.live.programs.job_folder import JobFolder, ProcessName

if TYPE_CHECKING:
    from malleable.live.core.events import Registered
    from malleable.live.programs.job_folder import HeldCores
    from malleable.model import Workload


@dataclass
class ProgramRun:
    """What changes while a program waits and runs; `ProgramJobs` guards it with its lock."""

    stored: StoredJob
    folder: JobFolder
    cancel_asked: bool = False
    last: LastOrder = field(default_factory=LastOrder)
    """For a supervisor that is not attached yet, or not attached again."""
    on_order: Callable[[Order], None] | None = None
    on_cancel: Callable[[], None] | None = None
    supervisor: ProcessName | None = None
    attempts: int = 0
    running: bool = False
    """Whether its command was started, as far as is known."""
    ending: bool = False
    """Whether it has ended, which may not be on the disk yet."""
    gone: bool = False

    @property
    def over(self) -> bool:
        """Whether there is nothing more to be done for it by this broker, but to note its end."""
        return self.ending or self.gone

    @property
    def job(self) -> str:
        """The name of its job."""
        return self.stored.job

    def condition(self) -> Literal["supervised", "ended", "lost", "waiting", "replaced"]:
        """What became of the program, by its folder; one that ran is never said to wait, even without one.

        A folder that was made for another program says nothing of this one, which is `replaced`.
        """
        if not self.folder.is_of(self.stored.ticket):
            return "replaced"
        if self.folder.supervisor() is not None:
            return "supervised"
        if (
            self.folder.result() is not None
        ):  # looked for after the supervisor, which writes it before it ends
            return "ended"
        return "lost" if self.running or self.folder.started else "waiting"

    def registered(self, workload: Workload, held: HeldCores, age: float) -> Registered:
        """The job as the scheduler is told of it, with what it has and what it has done."""
        request = self.stored.request
        return request.registered(
            self.job,
            cores=held.cores,
            age=age,
            started=self.running,
            work_done=_work_done(workload, str(request.job_class), held.history(time.monotonic())),
        )


def _work_done(workload: Workload, job_class: str, history: dict[int, float]) -> float:
    """Work, as time on one core, of the seconds at each width, at the speeds that are believed in."""
    names = list(workload.class_names)
    speedup = workload.speedups[names.index(job_class)] if job_class in names else UNKNOWN.speedup
    return sum(float(speedup(cores)) * seconds for cores, seconds in history.items())
