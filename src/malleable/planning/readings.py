"""What a metric is on n cores, by simulation: replications of the same jobs for every n, until it is clear.

All numbers of cores see the same jobs (common random numbers), so that the metric falls smoothly with n. The
replications are independent, and what each of them says of the metric (a mean, a percentile, what one more
core saves) is a sample of a t interval. A reading is asked for in stages, each four times as long and of jobs
of its own, so that what the search has looked at does not colour the proof; the error that is allowed in all
is divided among the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable import simulation
from malleable.contracts import Policy
from malleable.errors import InfeasibleError, MalleableError, UnstableError
from malleable.model import Workload
from malleable.planning.floors import Floor
from malleable.planning.search import Reading, Theory
from malleable.planning.targets import Target
from malleable.statistics import find_warmup
from malleable.statistics.intervals import t_quantile
from malleable.statistics.percentiles import kept_histogram, quantiles
from malleable.theory import meanfield, relaxed

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.results import Result

REPLICATIONS = 8
STAGES = 4
GROWTH = 4
"""How much longer each stage is than the one before it."""
FIRST_STAGE = 40_000
"""Jobs of a replication in the first stage."""
FILLINGS = 30.0
"""Multiples of the jobs present that a replication has at least: a large machine starts empty."""


@dataclass(eq=False)
class Simulated:
    """A metric of a policy on a workload, by number of cores."""

    workload: Workload
    policy: Policy | str
    target: Target
    confidence: float = 0.95
    seed: int = 0
    jobs: int | None = None
    """Jobs of a replication in the first stage."""
    workers: int | None = None
    progress: Callable[[int, int], None] | None = None
    stages: int = STAGES
    known: dict[int, Reading] = field(default_factory=dict)
    ran: int = 0

    def __post_init__(self) -> None:
        self.floor = Floor(self.workload, self.target)

    @property
    def least(self) -> int:
        return self.floor.least

    @property
    def policy_name(self) -> str:
        return next((one.policy for one in self.known.values() if one.policy), str(self.policy))

    def ruled_out(self, most: int) -> tuple[int, float] | None:
        cores = self.floor.most_ruled_out(most)
        return (cores, self.floor.value(cores)) if cores else None

    def theory(self, cores: int) -> Theory:
        try:
            bound: float | None = relaxed.bound(self.workload, float(cores)).bound_capped
        except InfeasibleError:
            bound = None
        try:
            found = meanfield.mean_field(self.workload, float(cores), Policy.of(self.policy), starts=0)
        except MalleableError:
            return Theory(bound)
        return Theory(bound, found.cost, found.refined.cost if found.refined.applies else None)

    def guess(self, above: int, most: int) -> int | None:
        """By the cost that theory expects; other metrics have none."""
        if self.target.metric != "cost" or self.target.job_class is not None:
            return None
        return self._first(above, most, self._expected)

    def _expected(self, cores: int) -> float:
        known = self.theory(cores)
        values = (known.refined, known.mean_field, known.bound)
        return next((value for value in values if value is not None), math.inf)

    def _first(self, above: int, most: int, value: Callable[[int], float]) -> int | None:
        """The fewest cores on which a value that falls with them is below the limit."""
        low, high = above, max(2 * above, 1)
        while value(high) >= self.target.limit:
            low, high = high, 2 * high
            if high > most:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if value(middle) < self.target.limit else (middle, high)
        return high

    def read(self, cores: int, stage: int = 0) -> Reading:
        """The metric on so many cores, at least as long a run as the stage asks for."""
        found = self.known.get(cores)
        if found is None or found.stage < stage:
            found = self.known[cores] = self._read(cores, stage)
        return found

    def _read(self, cores: int, stage: int) -> Reading:
        try:
            results = self._results(cores, stage)
        except (InfeasibleError, UnstableError) as error:
            return Reading(cores, math.inf, math.inf, math.inf, STAGES, problem=error.sentence)
        if not all(result.stable for result in results):
            problem = f"the queue grows on {cores} cores"
            return Reading(cores, math.inf, math.inf, math.inf, stage, problem=problem)
        samples = self.samples(cores, results, stage)
        low, high = interval(samples, self.confidence, max(self.stages - 1, 1))
        cost = float(np.mean([result.cost.mean for result in results]))
        return Reading(cores, float(samples.mean()), low, high, stage, cost, results[0].policy)

    def samples(self, cores: int, results: list[Result], stage: int) -> FloatArray:  # noqa: ARG002
        """The metric in each replication."""
        return np.array([metric_of(result, self.target) for result in results])

    def _results(self, cores: int, stage: int) -> list[Result]:
        filling = math.ceil(FILLINGS * self.workload.total_load)
        jobs = max(self.jobs or FIRST_STAGE, filling) * GROWTH**stage
        before = self.ran

        def report(done: int, total: int) -> None:
            if self.progress is not None:
                self.progress(before + done, before + max(total, 1) * 2)

        results = simulation.simulate_apart(
            self.workload, cores, self.policy, jobs=jobs, seed=self.seed + stage * REPLICATIONS,
            replications=REPLICATIONS,
            workers=self.workers, progress=report,
        )  # fmt: skip
        self.ran += jobs * REPLICATIONS
        return results


class Saving(Simulated):
    """What one more core saves per hour, with holding costs as money per hour."""

    def ruled_out(self, most: int) -> tuple[int, float] | None:  # noqa: ARG002 - a bound on the cost is none
        return None

    def guess(self, above: int, most: int) -> int | None:
        """By the price of a core in the relaxed problem, which is what one more saves there."""

        def price(cores: int) -> float:
            try:
                return relaxed.long_run_price(self.workload, float(cores))
            except InfeasibleError:
                return math.inf

        return self._first(above, most, price)

    def samples(self, cores: int, results: list[Result], stage: int) -> FloatArray:
        """The difference to one more core in each replication: the same jobs on both."""
        more, rate = self._results(cores + 1, stage), self.workload.total_rate
        return rate * np.array([a.cost.mean - b.cost.mean for a, b in zip(results, more, strict=True)])


def metric_of(result: Result, target: Target) -> float:
    """The metric of a target in one run."""
    described = result.workload
    rows = [one for one in result.classes if target.job_class in {None, one.name}]
    if described is None or not rows:
        raise ValueError("the result is of another workload")
    metric = target.metric
    if metric == "cost" and target.job_class is None:
        return result.cost.mean
    if target.level is not None:
        return _percentile(result, target, target.level)
    rates = np.array([described.classes[described.index(one.name)].arrivals.rate for one in rows])
    costs = np.array([described.classes[described.index(one.name)].holding_cost for one in rows])
    if metric == "slowdown":
        values = np.array([one.mean_slowdown for one in rows])
    else:
        values = np.array([one.response_time.mean for one in rows]) * (costs if metric == "cost" else 1.0)
    return float(rates @ values / rates.sum())


def _percentile(result: Result, target: Target, level: float) -> float:
    """Of the jobs of a class, or of all, after the warm-up."""
    if result.workload is None:
        raise ValueError("the result has no workload")
    cuts = find_warmup(result.records, result.workload).cuts
    histogram = kept_histogram(result.records, cuts, "response_histogram")
    chosen = [i for i, one in enumerate(result.classes) if target.job_class in {None, one.name}]
    return float(quantiles(histogram[chosen].sum(axis=0), np.array([level]))[0])


def interval(samples: Any, confidence: float, stages: int) -> tuple[float, float]:
    """An interval for the mean of independent samples: one of so many looks, and one of two statements.

    Each end is wrong with a probability of (1 − confidence)/2, divided by the number of looks.
    """
    count, mean = len(samples), float(np.mean(samples))
    quantile = t_quantile(count - 1, 1.0 - (1.0 - confidence) / stages)
    half = quantile * float(np.std(samples, ddof=1)) / math.sqrt(count)
    return (-math.inf, math.inf) if math.isnan(half) else (mean - half, mean + half)
