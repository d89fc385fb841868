"""`wham-discounted` improved once, for known sizes: a value function is fitted to it, then GREEDY on that.

What a state of the system costs from now on under `wham-discounted` is nearly a quadratic function of what is
left of the jobs (`improved.size_value`, `improved.size_value_fit`). A unit of a job's work is worth what it
saves of that, and at every event the cores are divided so that Σ w_j s_j(k_j) is largest
(`improved.size_value`).

The fit takes a path of some ten thousand events, once for a workload and a number of cores. It then has to
cost less than `wham-discounted` in a short simulation on the same jobs; if it does not, or if there is no
fit, the policy is `wham-discounted`, and results say so.

The fit takes arrivals to be Poisson with the rates of the workload. A load that is not the one told may cost
more than the fit gains. So the policy is `wham-discounted` with more jobs than the fit has seen, and steps
back if it loses at a load higher or lower by the factor `headroom`; 1 trusts the load, does neither, and
gains more where it is high. `load` is that of the fit, if it is not that of the workload.

`moments` is how many moments of the path the fit looks at; fewer are quicker and gain less. Without `trial`
the fit is used as it is: for those who try it themselves (`auto`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from malleable.model import ConditionWarning, checked_cores
from malleable.policies.base import ANY, Count, JobRule, Need, OpenFraction, Program, memoized
from malleable.policies.base.paired_trial import HEADROOM
from malleable.policies.improved.size_value import fitted_integer_rule, fitted_rule
from malleable.policies.improved.size_value_fit import Improvement, improvement
from malleable.policies.rules.discounted_market import DISCOUNTED, discounted_table
from malleable.policies.rules.discounted_rule import discounted_rule
from malleable.policies.rules.market import market_jobs_table
from malleable.policies.wham_discounted import Outlook, WhamDiscounted
from malleable.theory.market import GreedyBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


class SteppedBackWarning(UserWarning):
    """A policy could not be fitted, and another one runs in its place."""


@dataclass(frozen=True)
class WhamFitted(JobRule):
    """WHAM improved for known sizes by a fitted value function; `load` is that of the fit, if given."""

    needs = "speedups, work left, rates, laws of sizes"

    blocking: ClassVar[bool] = False
    load: OpenFraction | None = None
    moments: Count | None = None
    headroom: Annotated[float, Ge(1)] = HEADROOM
    trial: bool = True

    def improvement(self, workload: Workload, cores: float) -> Improvement:
        """What was fitted, or why it steps back to `wham-discounted`."""
        cores = checked_cores(cores)
        fitted_to = workload if self.load is None else workload.at(cores, self.load)
        expected = WhamDiscounted().outlook(fitted_to, cores)
        return _improved(fitted_to, cores, expected, self.moments, self.headroom, self.trial)

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        """Jobs that bring speedups of their own are none of those that were fitted: `wham-discounted`."""
        if need.own is not None:
            return WhamDiscounted().program(workload, cores, need)
        found = self.improvement(workload, cores)
        base = discounted_table(workload, cores, *WhamDiscounted().outlook(workload, cores))
        if found.numbers is None:
            if found.broken:
                warnings.warn(stepped_back(found), SteppedBackWarning, stacklevel=2)
            return Program(discounted_rule, base)
        if not need.whole:
            return Program(fitted_rule, np.concatenate([base, found.numbers]))
        return Program(fitted_integer_rule, _whole_table(workload, cores, base, found.numbers))

    def notes(self, workload: Workload, cores: float) -> tuple[str, ...]:
        found = self.improvement(workload, cores)
        return () if found.numbers is not None else (stepped_back(found),)


def stepped_back(found: Improvement) -> str:
    """What to say of a policy that was not fitted."""
    return f"wham-fitted stepped back to wham-discounted: {found.reason}"


def _whole_table(workload: Workload, cores: float, base: FloatArray, numbers: FloatArray) -> FloatArray:
    """The same table with the widths that are of use on whole cores."""
    buyers = GreedyBuyers(workload.speedups, np.ones(len(workload.classes)), integer=True)
    market = market_jobs_table(workload, cores, buyers=buyers)
    return np.concatenate([market, base[-len(DISCOUNTED) :], numbers])


@memoized
def _improved(
    workload: Workload, cores: float, expected: Outlook, moments: int | None, headroom: float, trial: bool
) -> Improvement:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return improvement(workload, cores, expected, moments, headroom, trial=trial)
