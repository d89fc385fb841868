"""Several policies play the same jobs live, and the simulator says what it expects of them.

The simulator runs as `malleable simulate` does, on the very same jobs, with the same warm-up; so the two
differ by what only a real machine has: whole cores, answers that take time, and a clock that does not wait.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.spec import Positive, validate
from malleable.engine.run import Outcome
from malleable.errors import MalleableError, ParameterError
from malleable.live.core.scheduler import Scheduler
from malleable.live.play.burning import Burners, Burning
from malleable.live.play.records import records_of
from malleable.live.play.session import Session
from malleable.live.play.work import Sleeping, Work
from malleable.live.system.cpus import CpuSets
from malleable.results import Comparison, Difference, Result, ResultError, Status, summarise
from malleable.results.comparison import paired_difference
from malleable.simulation import Settings, Task, run_task
from malleable.simulation.task import checked_task
from malleable.sources.streams import Chunk
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from malleable.contracts import Policy
    from malleable.model import Workload

    Progress = Callable[[int, int], None]

WARMUP = 0.1
"""Share of the jobs that is left out at the start."""
SHORTEST_STAY = 0.1
"""Seconds that a job is to be there on average, at least, at the speed that is chosen by default."""
MOST_PER_SECOND = 40.0
"""Jobs that are to come per second, at most, likewise."""
BEHIND = 0.02
"""Lateness, as a share of the time that jobs are there, from which on it is said."""

ENOUGH_CPU = 0.95
"""Share of the CPU time of their cores that jobs that burn are to have; less is said."""
TINY = 1e-12


@dataclass(frozen=True)
class Lateness:
    """By how many seconds arrivals and departures were handled after they were due."""

    mean: float
    p99: float
    most: float

    @classmethod
    def of(cls, late: Sequence[float]) -> Lateness:
        """Of single values."""
        values = np.asarray(late) if len(late) else np.zeros(1)
        return cls(float(values.mean()), float(np.quantile(values, 0.99)), float(values.max()))


@dataclass(frozen=True)
class PlayedPolicy:
    """A policy on the live system, beside its simulation on the same jobs."""

    live: Result
    simulated: Result
    difference: Difference
    """Cost live minus cost simulated."""
    lateness: Lateness

    @property
    def share(self) -> float:
        """The difference as a share of the simulated cost."""
        return self.difference.mean / self.simulated.cost.mean

    def to_dict(self) -> dict[str, Any]:
        """The policy's part of the JSON document."""
        return {
            **self.live.to_dict(),
            "simulated": self.simulated.to_dict(),
            "difference": {**self.difference.to_dict(), "share": self.share},
            "lateness": vars(self.lateness),
        }


@dataclass(frozen=True)
class Played:
    """What came of it."""

    policies: tuple[PlayedPolicy, ...]
    speed: float
    """Units of model time per second."""
    burned: bool
    """Whether jobs burned CPU time, or slept."""
    missing: tuple[str, ...] = ()
    """Policies that were not played, after Ctrl-C."""
    jobs: Chunk | None = field(default=None, repr=False)
    """The jobs that every policy saw."""

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped early."""
        return bool(self.missing) or any(one.live.status == Status.INTERRUPTED for one in self.policies)

    @property
    def same_order(self) -> bool:
        """Whether policies are in the same order by their cost live as simulated."""
        live = sorted(self.policies, key=lambda one: one.live.cost.mean)
        return live == sorted(self.policies, key=lambda one: one.simulated.cost.mean)

    def log(self) -> str:
        """The jobs as a plain log, which `malleable replay` reads: arrival, size and class of each."""
        workload = self.policies[0].live.workload
        if self.jobs is None or workload is None:
            raise ResultError("these jobs were not kept", "play again")
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("arrival", "size", "class"))
        names = [workload.class_names[i] for i in self.jobs.classes.tolist()]
        writer.writerows(zip(self.jobs.times.tolist(), self.jobs.sizes.tolist(), names, strict=True))
        return text.getvalue()

    def comparison(self) -> Comparison:
        """All results, live and simulated, and their differences: what is saved."""
        results = [result for one in self.policies for result in (one.live, one.simulated)]
        return Comparison(tuple(results), tuple(one.difference for one in self.policies))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable play`."""
        return {
            "speed": self.speed,
            "burned": self.burned,
            "same_order": self.same_order,
            "missing": list(self.missing),
            "results": [one.to_dict() for one in self.policies],
        }


def play(
    workload: Workload,
    cores: int,
    policies: Sequence[Policy | str],
    *,
    jobs: int = 500,
    speed: float | None = None,
    load: float | None = None,
    seed: int = 0,
    warmup: int | None = None,
    burn: bool = False,
    progress: Progress | None = None,
) -> Played:
    """Play `jobs` jobs of a workload under each policy, at `speed` units of model time per second.

    Without a speed one is chosen at which jobs are there for a tenth of a second on average, and at most 40
    come per second. `burn` lets jobs burn CPU time, on the CPUs of this machine only. `progress(done, total)`
    is told numbers of jobs, and may raise KeyboardInterrupt; what is there by then is returned.
    """
    settings = Settings(jobs=jobs, seed=seed, warmup=int(WARMUP * jobs) if warmup is None else warmup)
    tasks = [checked_task(workload, cores, policy, load, settings) for policy in policies]
    if not tasks:
        raise ParameterError("there is no policy to play", "give one, such as wham")
    chosen = _speed(tasks[0], speed)
    cpus = _cpus(cores) if burn else None
    drawn = _take(tasks[0], jobs)
    played: list[PlayedPolicy] = []
    for task in tasks:
        tell = _offset(progress, len(played) * jobs, len(tasks) * jobs)
        found = _play(task, drawn, chosen, cpus, tell)
        played += [] if found is None else [found]
        if found is None or found.live.status == Status.INTERRUPTED:
            break
    missing = tuple(task.label for task in tasks[len(played) :])
    return Played(tuple(played), chosen, burn, missing, drawn)


def _play(
    task: Task, jobs: Chunk, speed: float, cpus: CpuSets | None, progress: Progress | None
) -> PlayedPolicy | None:
    """One policy; None if it was stopped before there was anything to say."""
    expected = run_task(task)
    scheduler = Scheduler(task.workload, int(task.cores), task.policy, learn=False)
    scheduler.load_machine_code()
    burning = None if cpus is None else Burning(task.workload, Burners(cpus.free), speed)
    work: Work = burning or Sleeping(task.workload)
    seen = Session(scheduler, jobs, work, speed, cpus).run(progress)
    records = records_of(jobs, seen, task.cores, len(task.workload.classes), expected.records)
    if records.size == 0 or seen.came <= (task.settings.warmup or 0) + records.stride:
        return None
    simulated = _result(task, expected, f"{task.label} (simulated)", whole_cores=task.policy.whole_cores)
    outcome = Outcome(records, seen.came, seen.events, seen.seconds, seen.interrupted)
    live = _result(task, outcome, task.label, whole_cores=True)
    lateness = Lateness.of(seen.late)
    had = 1.0 if burning is None else burning.seconds * speed / max(seen.core_time, TINY)
    doubts = _doubts(scheduler.problem, had, lateness.mean, _mean_stay(live) / speed, speed)
    live = replace(live, notes=(*doubts, *live.notes))
    return PlayedPolicy(live, simulated, paired_difference(live, simulated, controls=False), lateness)


def _result(task: Task, outcome: Outcome, policy: str, *, whole_cores: bool) -> Result:
    """What a run says, live or simulated.

    Without control variates: they make up for the jobs that happened to come, which are the same in both.
    """
    return summarise(
        [outcome.records],
        workload=task.workload,
        cores=task.cores,
        policy=policy,
        seed=task.settings.seed,
        jobs=outcome.jobs,
        warmup=task.settings.warmup,
        events=outcome.events,
        seconds=outcome.seconds,
        status=Status.INTERRUPTED if outcome.interrupted else Status.COMPLETE,
        controls=False,
        whole_cores=whole_cores,
        blocking=task.policy.blocking,
    )


def _doubts(problem: str, had: float, late: float, stay: float, speed: float) -> Iterator[str]:
    """What to know of a live run before trusting its numbers; times are in seconds."""
    if problem:
        yield f"the policy could not decide, and cores were divided equally: {problem}"
    if had < ENOUGH_CPU:
        yield f"jobs had {had:.0%} of the CPU time of their cores: other programs run on this machine"
    if late > BEHIND * stay:
        yield (
            f"this machine was {1e3 * late:.2g} ms late on average, and jobs were there for {1e3 * stay:.2g} "
            f"ms: play at a lower speed than {speed:.3g}"
        )


def _mean_stay(live: Result) -> float:
    """The mean response time over all jobs that left."""
    jobs = np.array([c.jobs for c in live.classes], dtype=float)
    times = np.array([c.response_time.mean if c.jobs else 0.0 for c in live.classes])
    return float(jobs @ times / max(jobs.sum(), 1.0))


def _speed(task: Task, speed: float | None) -> float:
    """The speed asked for, or one at which jobs are there long enough to be timed."""
    if speed is not None:
        try:
            return float(validate(Positive, speed))
        except MalleableError as error:
            hint = "give the units of model time that pass per second, such as 0.5"
            raise ParameterError(error.problem, hint, ("speed",)) from None
    found = bound(task.workload, task.cores)
    stay = sum(c.jobs for c in found.classes) / task.workload.total_rate
    return float(f"{min(stay / SHORTEST_STAY, MOST_PER_SECOND / task.workload.total_rate):.2g}")


def _cpus(cores: int) -> CpuSets:
    """The CPUs to burn on."""
    allowed = os.sched_getaffinity(0)
    if cores > len(allowed):
        raise ParameterError(
            f"jobs cannot burn CPU time on {cores} cores: this machine has {len(allowed)}",
            "use fewer cores, or leave --burn out: jobs that sleep may have any number of cores",
        )
    return CpuSets(allowed, all_threads=True)


def _take(task: Task, count: int) -> Chunk:
    """The first jobs of the stream that the simulator sees."""
    stream = task.source.stream(task.workload)
    parts, size = [], 0
    while size < count:
        parts.append(stream.take())
        size += parts[-1].size
    return Chunk(*(np.concatenate(columns)[:count] for columns in zip(*parts, strict=True)))


def _offset(progress: Progress | None, before: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)
