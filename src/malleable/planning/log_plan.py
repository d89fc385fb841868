"""The plan of a log: its jobs replayed on n cores, and one price path that bounds them on every n.

A replay leaves nothing to chance, so one run tells on which side of a target n lies; costs of given jobs
need not fall with every core, and what is said is that n meets the target and n − 1 misses it. The bound by
a price path, D(l; n′) = D(l; n) − (n′ − n)∫l, rules out numbers of cores for every schedule, even one that
knows the future. It is tightest where it was computed, so it is computed again where the target is met.

Holding costs are money per job-hour where cores have a price per hour; the price path is then money per
core-hour, too.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.spec import whole_number
from malleable.contracts import Policy
from malleable.errors import JobsError, MalleableError, ParameterError
from malleable.model import Workload
from malleable.model.job_list import JobList
from malleable.model.reading import builtin_workloads
from malleable.planning.changes import NONE, Changes, some_jobs
from malleable.planning.plan import Burst, Plan, check_price, planned, question, read_policies
from malleable.planning.search import Reading, Theory
from malleable.planning.targets import MONEY, Target
from malleable.replays.groups import grouped_by_class
from malleable.replays.running import run_policy
from malleable.replays.schedule import SHORTEST, Schedule, run_times
from malleable.theory.price_path import JobsBound, bound_for_jobs
from malleable.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from malleable.contracts import FloatArray

HOUR = 3600.0
PRECISION = 1e-3
"""Relative gain at which the search for prices ends."""
PATHS = 4
"""Price paths that are computed at most to rule out numbers of cores."""
WIDEST = 4.0
"""Up to how many times the cores there are the bound is computed, unless it is asked about more."""
BY_PRICES = ("cost", "response", MONEY)
"""The metrics that a price path bounds."""


@dataclass(eq=False)
class Replayed:
    """A metric of a policy on the jobs of a log, by number of cores."""

    jobs: JobList
    machine: float
    """Cores that there are now."""
    policy: Policy | str
    target: Target
    core_price: float | None = None
    progress: Callable[[int, int], None] | None = None
    prices: bool = True
    """Whether it computes price paths, which take longer than replays, to rule out numbers of cores."""
    stages: int = 1
    confidence: float = 1.0
    known: dict[int, Reading] = field(default_factory=dict)
    ran: int = 0
    paths: list[JobsBound] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not len(self.jobs):
            raise JobsError("there is no job in the log", "give a log with jobs that ran")

    @cached_property
    def least(self) -> int:
        """The widest of the narrowest widths: on fewer cores some job can never run."""
        return max(math.ceil(one.allowed_widths.least) for one in self.jobs.workload.job_types)

    @property
    def policy_name(self) -> str:
        return next((one.policy for one in self.known.values() if one.policy), str(self.policy))

    @cached_property
    def _mine(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """The jobs that the target is about."""
        groups = grouped_by_class(self.jobs)
        if self.target.job_class is None:
            return np.ones(len(self.jobs), dtype=bool)
        return np.asarray(groups.codes == groups.names.index(self.target.job_class))

    @cached_property
    def hours(self) -> float:
        """From the first arrival to the last, for which cores are paid."""
        return max(float(self.jobs.times[-1] - self.jobs.times[0]), 1.0) / HOUR

    def read(self, cores: int, stage: int = 0) -> Reading:
        if cores not in self.known:
            self.known[cores] = self._read(cores, stage)
        return self.known[cores]

    def _read(self, cores: int, stage: int) -> Reading:
        before = self.ran

        def report(done: int) -> None:
            if self.progress is not None:
                self.progress(before + done, before + 2 * len(self.jobs))

        try:
            found = run_policy(self.policy, self.jobs, float(cores), progress=report)
        except MalleableError as error:
            return Reading(cores, math.inf, math.inf, math.inf, stage, problem=error.sentence)
        if found is None:
            raise KeyboardInterrupt
        self.ran += len(self.jobs)
        value = self._value(found, cores)
        return Reading(cores, value, value, value, stage, found.cost, found.policy)

    def _value(self, found: Schedule, cores: int) -> float:
        if self.target.metric == MONEY:
            return self._money(float(found.costs.sum()), cores)
        columns = {"cost": found.costs, "wait": found.waits, "slowdown": found.slowdowns}
        return _measured(columns.get(self.target.metric, found.responses)[self._mine], self.target)

    def _money(self, cost: float, cores: int) -> float:
        """What cores and jobs cost per hour of the log."""
        return (self.core_price or 0.0) * cores + cost / HOUR / self.hours

    def ruled_out(self, most: int) -> tuple[int, float] | None:
        """By price paths for means, by each job alone on the machine for the others."""
        if self.target.metric == MONEY:
            return None
        alone = _most(lambda n: self._alone(n) >= self.target.limit, 0, most)
        needed = self.prices and alone < most and self.target.metric in BY_PRICES
        cores = self._by_paths(alone, most) if needed else alone
        return (cores, self.bound(cores)) if cores else None

    def _by_paths(self, cores: int, most: int) -> int:
        """The most cores that are ruled out by prices that were found near them."""
        widest = min(most, max(math.ceil(WIDEST * self.machine), self.least, cores))
        place = min(int(self.machine), widest)
        for _ in range(PATHS):
            self._path(max(place, self.least), widest)
            further = _most(lambda n: self.bound(n) >= self.target.limit, cores, widest)
            if further == cores and len(self.paths) > 1:
                break
            cores, place = further, min(further + 1, widest)
        return cores

    def bound(self, cores: int) -> float:
        """What no schedule on so many cores goes below."""
        by_prices = (path.at(float(cores)) / len(self._bounded) for path in self.paths if cores <= path.cores)
        return max([*by_prices, self._alone(cores)]) if cores else math.inf

    def _path(self, cores: int, widest: int) -> None:
        """Find prices that are good for so many cores, and hold up to the widest."""
        wide = float(max(widest, cores))
        self.paths.append(bound_for_jobs(self._bounded, float(cores), precision=PRECISION, widest=wide))

    @cached_property
    def _bounded(self) -> JobList:
        """The jobs whose total is bounded; the others could all leave at once."""
        jobs = self.jobs if self._mine.all() else some_jobs(self.jobs, np.flatnonzero(self._mine))
        return replace(jobs, weights=np.ones(len(jobs))) if self.target.metric == "response" else jobs

    def _alone(self, cores: int) -> float:
        """The metric if every job had all the cores for itself."""
        if not cores:
            return math.inf
        metric, jobs, n = self.target.metric, self.jobs, float(cores)
        if metric == "wait":
            return 0.0
        fastest = np.array([float(s(min(n, max(float(s.peak), 1.0)))) for s in jobs.workload.speedups])
        times = jobs.sizes / fastest[jobs.classes]
        if metric == "cost":
            times = times * jobs.weight
        elif metric == "slowdown":
            times = np.maximum(times / np.maximum(run_times(jobs), SHORTEST), 1.0)
        return _measured(times[self._mine], self.target)

    def theory(self, cores: int) -> Theory:
        """The bound on the mean cost, by the price paths of the costs."""
        if self.target.metric not in {"cost", MONEY} or not self._mine.all() or not self.paths:
            return Theory()
        known = [path.at(float(cores)) for path in self.paths if cores <= path.cores]
        return Theory(max(known) / len(self.jobs)) if known else Theory()

    def guess(self, above: int, most: int) -> int | None:
        """The cores that there are: on very few, jobs pile up and take long to replay."""
        return max(above + 1, min(int(self.machine), most))


def plan_log(
    jobs: JobList,
    machine: float,
    target: str | None = None,
    policy: str | Policy | Sequence[str | Policy] = "wham",
    *,
    most: int | None = None,
    core_price: float | None = None,
    job_price: float | None = None,
    burst_price: float | None = None,
    changes: Changes = NONE,
    remade: Callable[..., JobList] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """The fewest cores on which given jobs meet a target, or cost least; see `malleable.plan`.

    `remade` makes the jobs of their log anew, under other assumptions.
    """
    groups = grouped_by_class(jobs).names
    asked = question(target, groups, core_price, prices=MONEY)
    check_price("burst-price", burst_price)

    def meters(of: JobList, some: Sequence[str | Policy], *, prices: bool = True) -> Iterator[Replayed]:
        priced = priced_jobs(of, job_price)
        return (Replayed(priced, machine, one, asked, core_price, progress, prices) for one in some)

    def again(of: JobList, name: str) -> Replayed:
        return next(meters(of, [name], prices=False))

    made = planned(
        jobs.workload.name,
        asked,
        meters(jobs, read_policies(policy)),
        most=None if most is None else whole_number("most", most, 1),
        present=math.floor(machine),
        core_price=core_price,
        changes=[(what, partial(again, of)) for what, of in changes.of_log(jobs, remade)],
        rented=None if burst_price is None else partial(_burst, priced_jobs(jobs, job_price), burst_price),
    )
    return replace(made, assumptions=jobs.assumptions)


def priced_jobs(jobs: JobList, job_price: float | None) -> JobList:
    """The jobs, each of which costs so much per hour if that is given."""
    check_price("job-price", job_price)
    return jobs if job_price is None else replace(jobs, weights=np.full(len(jobs), job_price))


def _burst(jobs: JobList, price: float, cores: int) -> Burst:
    """When a core is worth more than a rented one costs, and what renting one then saves at most."""
    path = bound_for_jobs(jobs, float(cores), precision=PRECISION)
    lengths = np.diff(path.edges) / HOUR
    above = path.prices > price
    saving = float(((path.prices - price) * lengths)[above].sum())
    span = float(path.edges[-1] - path.edges[0]) / HOUR
    return Burst(price, float(lengths[above].sum()), span, saving)


def _measured(values: FloatArray, target: Target) -> float:
    """The mean, or the percentile that the target is about."""
    if not len(values):
        raise ParameterError(f"there are no jobs of class {target.job_class!r}")
    return float(values.mean() if target.level is None else np.percentile(values, 100.0 * target.level))


def _most(ruled_out: Callable[[int], bool], low: int, high: int) -> int:
    """The most cores that are ruled out, where fewer are, too."""
    if ruled_out(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ruled_out(middle) else (low, middle)
    return low


def is_log(source: Any) -> bool:
    """Whether something is a log, or a study of one, and not a workload."""
    if isinstance(source, Trace):
        return True
    if isinstance(source, Workload) or str(source) == "-" or str(source) in builtin_workloads():
        return False
    path = Path(source)
    if path.suffix.lower() != ".toml" or not path.is_file():
        return path.exists()
    try:
        return "log" in tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
