"""A stochastic workload like a log, with the means and variations of its jobs; and how well it stands in.

Each class has renewal arrivals and a law of sizes, both with the mean and the squared coefficient of
variation of its jobs (and the third moment where a law of two phases can have it). Hours of the day, users
who come in bursts and ties between size and time are lost, so the workload is put to the test: the policy
is simulated on it, and replayed on the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.arrivals.poisson import Poisson
from malleable.arrivals.renewal import Renewal
from malleable.errors import MalleableError
from malleable.model import Workload
from malleable.model.job_list import JobList
from malleable.results import Result
from malleable.simulation.simulate import simulate
from malleable.traces.study.laws import law_of, scv

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import Arrivals, FloatArray

FEWEST = 3
"""Times between arrivals from which on there is a law of them."""
LIKE_POISSON = 0.1
"""How far the variation of times between arrivals may be from 1 for a Poisson process."""
SIMULATED = 200_000
"""Jobs to simulate."""


@dataclass(frozen=True, eq=False)
class FittedWorkload:
    """A workload fitted to given jobs, and what a policy costs on either."""

    workload: Workload
    jobs: JobList = field(repr=False)
    cores: float
    policy: str
    simulated: Result | None
    """None where the workload cannot be simulated; `reason` says why."""
    replayed: float
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """The simulated cost over the replayed one: 1 if the workload stands for the log."""
        return None if self.simulated is None else self.simulated.cost.mean / self.replayed

    @property
    def words(self) -> str:
        """How well it stands for the log, in a sentence."""
        if self.simulated is None or self.ratio is None:
            return f"It cannot be simulated: {self.reason}"
        away = abs(self.ratio - 1.0)
        verdict = (
            "stands for the log well" if away < 0.1 else "is a rough stand-in" if away < 0.3 else "misleads"
        )
        return (
            f"Under {self.policy} a job costs {self.simulated.cost.mean:.6g} on the workload and "
            f"{self.replayed:.6g} in the log (ratio {self.ratio:.3g}): the workload {verdict}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable workload`."""
        return {
            "workload": self.workload.to_dict(),
            "cores": self.cores,
            "load": self.workload.load(self.cores),
            "policy": self.policy,
            "simulated": None if self.simulated is None else self.simulated.to_dict()["cost"],
            "replayed": self.replayed,
            "ratio": self.ratio,
            "words": self.words,
            "assumptions": list(self.jobs.assumptions),
        }


def fit_workload(
    jobs: JobList,
    cores: float,
    policy: str,
    replayed: float,
    *,
    seed: int = 0,
    count: int = SIMULATED,
    progress: Callable[[int, int], None] | None = None,
) -> FittedWorkload:
    """The workload, and the cost of a policy on it beside `replayed`, that on the jobs themselves."""
    made = stochastic(jobs)
    simulated, reason = None, ""
    try:
        simulated = simulate(made, cores, policy, jobs=count, seed=seed, engine="cpu", progress=progress)
    except MalleableError as error:
        reason = error.sentence
    return FittedWorkload(made, jobs, cores, policy, simulated, replayed, reason)


def stochastic(jobs: JobList) -> Workload:
    """The classes of the jobs with laws of their own."""
    classes = []
    for i, one in enumerate(jobs.workload.classes):
        own = jobs.classes == i
        if own.any():
            weight = float(jobs.weight[own].mean())
            classes.append(
                replace(
                    one,
                    arrivals=_arrivals(jobs.times[own], len(jobs), float(np.ptp(jobs.times))),
                    size=law_of(jobs.sizes[own]),
                    holding_cost=weight,
                )
            )
    return Workload.of_known(jobs.workload.name, tuple(classes))


def _arrivals(times: FloatArray, every: int, span: float) -> Arrivals:
    """Renewal arrivals with the mean and variation of the log, at the rate of the class over the span."""
    mean = (span or 1.0) / len(times)
    intervals = np.diff(times)
    if len(intervals) < FEWEST or every < FEWEST or abs(scv(intervals) - 1.0) < LIKE_POISSON:
        return Poisson(rate=1.0 / mean)
    return Renewal(
        interval=law_of(intervals * (mean / float(intervals.mean())) if intervals.any() else intervals + mean)
    )
