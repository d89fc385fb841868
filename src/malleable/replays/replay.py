"""`replay`: policies on the same given jobs, with the bound for these very jobs, and all that follows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from malleable.catalog import split_policies
from malleable.contracts import Policy
from malleable.engine.enforcement import label
from malleable.errors import MalleableError, ParameterError, did_you_mean
from malleable.model import checked_cores
from malleable.model.job_list import JobList
from malleable.replays.blame import MOST_USERS, Fault
from malleable.replays.calendar import Calendar, calendar
from malleable.replays.groups import grouped_by_user
from malleable.replays.outcome import BOUND_NAME, result_of
from malleable.replays.resampling import Resampled, check_logs, resampled
from malleable.replays.running import OWN, own_schedule, run_policy
from malleable.replays.schedule import Schedule
from malleable.replays.shares import ShareCurve
from malleable.results import Comparison, Difference, Result
from malleable.theory.price_path import JobsBound, bound_for_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


SAME = 1e-9
"""Relative difference of costs that may be rounding."""
BOUND_STEPS = 100
"""About how many steps the search for the bound takes: what its progress counts for."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Schedules of the same jobs under several policies, and the least that any schedule could cost."""

    jobs: JobList = field(repr=False)
    cores: float
    schedules: tuple[Schedule, ...]
    """In the order of the policies; behind them the log's own, where it has one."""
    bound: JobsBound | None = None
    baseline: str = ""
    resampling: Resampled | None = None
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    shares: ShareCurve | None = None
    """The same log as more and more of it becomes malleable, if that was asked for."""

    def __getitem__(self, policy: str) -> Schedule:
        """The schedule of a policy."""
        for one in self.schedules:
            if one.policy == policy:
                return one
        raise ParameterError(
            f"no policy {policy!r} was replayed", did_you_mean(policy, [one.policy for one in self.schedules])
        )

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """A `Result` for each schedule."""
        return tuple(result_of(one, self.bound, self._interval(one)) for one in self.schedules)

    def _interval(self, one: Schedule) -> tuple[float, float] | None:
        if self.resampling is None or one.policy == OWN:
            return None
        half = self.resampling.half_width(one.policy)
        return max(one.cost - half, 0.0), one.cost + half

    @cached_property
    def comparison(self) -> Comparison:
        """The results side by side, with differences from the baseline."""
        base = self[self.baseline]
        made = []
        for one, result in zip(self.schedules, self.results, strict=True):
            if one is base:
                continue
            apart, half = one.cost - base.cost, float("inf")
            apart = 0.0 if abs(apart) <= SAME * base.cost else apart
            if self.resampling is not None and OWN not in {one.policy, base.policy}:
                half = self.resampling.half_width(one.policy, base.policy)
            made.append(
                Difference(
                    self.cores, one.policy, base.policy, apart, apart - half, apart + half, result.load
                )
            )
        return Comparison(self.results, tuple(made))

    def with_shares(self, curve: ShareCurve) -> Replay:
        """The same with the log replayed at several shares of malleable jobs."""
        return replace(self, shares=curve, interrupted=self.interrupted or curve.interrupted)

    def gap(self, one: Schedule) -> float | None:
        """By which share a schedule costs more than the bound; None where the bound does not hold for it."""
        if self.bound is None or not self.holds(one):
            return None
        return one.cost / self.bound.per_job - 1.0

    @cached_property
    def faults(self) -> dict[str, Fault]:
        """What each schedule costs beyond the bound, split; by policy."""
        if self.bound is None:
            return {}
        found = {one.policy: Fault.of(one, self.bound) for one in self.schedules}
        return {name: fault for name, fault in found.items() if fault is not None}

    @cached_property
    def calendar(self) -> Calendar | None:
        """The value of a core over the week."""
        return None if self.bound is None else calendar(self.jobs, self.bound)

    @property
    def best(self) -> Schedule:
        """The schedule that costs least on these cores; of several the first."""
        there = [one for one in self.schedules if self.holds(one)]
        least = min(one.cost for one in there)
        return next(one for one in there if one.cost <= least * (1.0 + SAME))

    def holds(self, one: Schedule) -> bool:
        """Whether a schedule never used more cores than there are: the log's own may have."""
        return self.bound is None or one.rents is not None

    @property
    def certificate(self) -> str | None:
        """How close to the best possible the best policy is, in a sentence."""
        if self.bound is None:
            return None
        left = max(1.0 - self.bound.per_job / self.best.cost, 0.0)
        return (
            f"Even knowing the future, nothing costs less than {self.best.policy} by more than {left:.2%} "
            f"on these {len(self.jobs):,} jobs."
        )

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What to know before trusting the numbers."""
        found = list(self.notes)
        if self.bound is not None and self.bound.by_prices < self.bound.bound:
            found.append("a simpler bound is higher than that by prices, from which blame is counted")
        return tuple(found)

    def users_of(self, one: Schedule, most: int = MOST_USERS) -> list[dict[str, Any]]:
        """How the users fared who used most of the machine."""
        users = grouped_by_user(self.jobs)
        if users is None:
            return []
        used, counts = users.sums(one.core_time), users.counts
        responses, slowdowns = users.means(one.responses), users.means(one.slowdowns)
        order = sorted(range(len(users.names)), key=lambda i: -used[i])[:most]
        return [
            {
                "name": users.names[i],
                "jobs": int(counts[i]),
                "core_seconds": float(used[i]),
                "response": float(responses[i]),
                "slowdown": float(slowdowns[i]),
            }
            for i in order
        ]

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable replay`."""
        results = []
        for one, result in zip(self.schedules, self.results, strict=True):
            fault = self.faults.get(one.policy)
            blamed = None if fault is None else fault.to_dict()
            results.append(
                {**result.to_dict(), **one.measures(), "blame": blamed, "users": self.users_of(one)}
            )
        return {
            "jobs": len(self.jobs),
            "cores": self.cores,
            "bound": None if self.bound is None else self.bound.per_job,
            "bound_name": None if self.bound is None else BOUND_NAME,
            "certificate": self.certificate,
            "results": results,
            "differences": [one.to_dict() for one in self.comparison.differences],
            "assumptions": list(self.jobs.assumptions),
            "notes": list(self.all_notes),
            "calendar": None if self.calendar is None else self.calendar.to_dict(),
            "resampling": None if self.resampling is None else self.resampling.to_dict(),
            "shares": None if self.shares is None else self.shares.to_dict(),
        }

    def save_table(self, folder: str | Path) -> Path:
        """Write comparison.json, .npz and .csv into a folder, as `compare` does; returns the folder."""
        return self.comparison.save_table(folder)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per policy and class."""
        return self.comparison.to_frame()


def replay(
    jobs: JobList,
    cores: float,
    policies: str | Sequence[Any],
    *,
    bound: bool = True,
    baseline: str | None = None,
    resample: int = 0,
    seed: int = 0,
    interpreted: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Every policy on the same jobs, from the first arrival to the last end.

    A policy that cannot run these jobs is left out and said in the notes, unless it is the only one. After
    Ctrl-C the policies that were done are kept. `progress(done, total)` is told numbers of jobs.
    """
    cores = checked_cores(cores)
    chosen = split_policies(policies) if isinstance(policies, str) else list(policies)
    if not len(jobs) or not chosen:
        raise ParameterError("there is nothing to replay", "give jobs and at least one policy")
    names = [label(one, Policy.of(one)) for one in chosen]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"the policy {twice!r} is named twice", "name each once")
    if baseline is not None and baseline not in names:
        raise ParameterError(
            f"the baseline {baseline!r} is not one of the policies", did_you_mean(baseline, names)
        )
    check_logs(resample)
    told = _Progress(progress, len(jobs), len(chosen), bound=bound, logs=resample)
    lowest = bound_for_jobs(jobs, cores, on_progress=told.bounding) if bound else None
    path = None if lowest is None else lowest.path
    schedules, notes, interrupted = [], [], False
    ran: list[Any] = []
    refused: MalleableError | None = None
    for place, policy in enumerate(chosen):
        told.policy = place
        try:
            one = run_policy(policy, jobs, cores, prices=path, interpreted=interpreted, progress=told.running)
        except MalleableError as error:
            refused = refused or error
            notes.append(f"{names[place]} is left out: {error.sentence}")
            continue
        if one is None:
            interrupted = True
            break
        schedules.append(one)
        ran.append(policy)
    if not schedules:
        raise refused or KeyboardInterrupt
    names = [one.policy for one in schedules]
    spread = None
    if resample and not interrupted:
        with suppress(KeyboardInterrupt):  # what was done is kept
            spread = resampled(jobs, cores, ran, names, resample, seed, told.resampling)
        interrupted = spread is None
    own = own_schedule(jobs, cores, lowest)
    if own is not None:
        schedules.append(own)
    return Replay(
        jobs=jobs,
        cores=cores,
        schedules=tuple(schedules),
        bound=lowest,
        baseline=baseline if baseline in names else names[0],
        resampling=spread,
        notes=tuple(notes),
        interrupted=interrupted,
    )


@dataclass
class _Progress:
    """Turns what each part tells into a number of jobs of all that there is to do."""

    tell: Callable[[int, int], None] | None
    jobs: int
    policies: int
    bound: bool
    logs: int
    policy: int = 0

    @property
    def total(self) -> int:
        return self.jobs * (self.policies * (1 + self.logs) + self.bound)

    def _told(self, done: float) -> None:
        if self.tell is not None:
            self.tell(min(int(done), self.total), self.total)

    def bounding(self, steps: int, _: float) -> None:
        self._told(self.jobs * min(steps / BOUND_STEPS, 1.0))

    def running(self, done: int) -> None:
        self._told(self.jobs * (self.bound + self.policy) + done)

    def resampling(self, logs: int) -> None:
        self._told(self.jobs * (self.bound + self.policies * (1 + logs)))
