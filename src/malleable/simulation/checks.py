"""What is refused before anything runs: work that no policy can keep up with, and numbers beyond floats."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from malleable.engine.run import recorded
from malleable.errors import InfeasibleError, ParameterError, UnsupportedError
from malleable.statistics import checked_confidence
from malleable.theory.relaxed import check_cores

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.simulation.settings import Settings

TINY, HUGE = 1e-140, 1e140
"""Numbers whose squares, and sums of them, are still numbers."""
CLOCK = 100.0 * sys.float_info.epsilon
"""Share of the time on the clock that a job must take to be timed to a hundredth."""


def check_load(workload: Workload, cores: float, mean_cores: float | None) -> None:
    """Refuse work that no policy can keep up with; what one policy cannot do, its run will show."""
    try:
        check_cores(workload, cores, mean_cores)
    except InfeasibleError as error:
        hint = f"{error.hint}, or pass --allow-unstable (allow_unstable=True)"
        raise InfeasibleError(error.problem, hint) from None


def check_numbers(workload: Workload, cores: float, jobs: int) -> None:
    """Refuse a run so long that its clock cannot time a job, and times and costs without squares."""
    length = jobs / workload.total_rate
    fastest = [float(s(min(cores, float(s.peak)))) for s in workload.speedups]
    services = float(workload.rates @ (workload.mean_sizes / fastest)) / workload.total_rate
    if not length * CLOCK < services:
        raise UnsupportedError(
            f"at a load of {workload.load(cores):.2g} {jobs} jobs take {length / services:.2g} times as long "
            "as one, beyond the digits of a clock",
            "use a higher load, or fewer jobs; `malleable bound` has an answer at any load",
        )
    costs = workload.holding_costs
    longest = max(length, float(workload.mean_sizes.max()), float(workload.rates.max()))
    if not (min(float(costs.min()), 1.0) * services > TINY and max(float(costs.max()), 1.0) * longest < HUGE):
        raise UnsupportedError(
            f"times from {services:.2g} to {longest:.2g} and holding costs from {costs.min():.4g} to "
            f"{costs.max():.4g} leave no room for a variance",
            "choose other units of time and cost",
        )


def check_statistics(settings: Settings) -> None:
    """See that the summary will not refuse what the run has yet to find."""
    try:
        checked_confidence(settings.confidence)
    except ParameterError:
        problem = f"confidence must lie between 0 and 1, got {settings.confidence!r}"
        raise ParameterError(problem, "0.95 means intervals of 95 %") from None
    kept = recorded(settings.most_jobs)
    if settings.warmup is not None and settings.warmup >= kept:
        problem = f"a warm-up of {settings.warmup} jobs leaves nothing of a run of {kept} jobs"
        raise ParameterError(problem, "run more jobs, or leave out fewer")
