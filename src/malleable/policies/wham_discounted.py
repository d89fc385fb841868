"""WHAM with a discounted premium: the discounted Whittle policy that knows what comes after the discount.

Discounting at rate α means that the present market ends at rate α and that nothing costs anything after it.
Whittle's policy at α > 0 therefore makes expensive jobs wait for a free lunch, and at a high load starves too
many of them. What really ends is a *shortage*: the price l falls back from where it is to its long-run value
l* (`theory.relaxed`), at which a job of class i pays φ_i(l*) = min_k (c_i + l*·k)/s_i(k) for a unit of work.
So only the premium l − l* is discounted. In the bandit of `theory.whittle` this adds a reward of φ_i(l*) for
each unit of work; l* = 0 gives the paper's bandit back. While l ≤ l* there is no premium, and the policy is
WHAM.

How fast does a shortage end? Two things take time, and they add up:

    1/α = 1/γ + W/(n − Σ_i load_i k_e/s_i(k_e))

γ is the relaxation rate of the fluid equation (the least |Re| of the eigenvalues of its Jacobian at the fixed
point, sizes taken as exponential). W is the core-time of the jobs for whom WHAM would have no core if one
core less were there; it drains at the rate at which cores are left over. With a long queue α goes to 0 and
the policy to WHAM, which serves c/x first, on one core each: it keeps up with any load below 1. With many
cores l stays near l*, and again the policy goes to WHAM.

At load 1 or more there is no l*, and on fewer than two cores there is no market: then it is WHAM.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from malleable.catalog.spec import positive
from malleable.distributions.exponential import Exponential
from malleable.errors import InfeasibleError, UnsupportedError
from malleable.model import ConditionWarning, JobType, checked_cores
from malleable.policies.base import ANY, Need, Policy, Positive, Program, memoized
from malleable.policies.rules.discounted_market import discounted_table
from malleable.policies.rules.discounted_rule import discounted_rule
from malleable.policies.wham import Wham
from malleable.theory.fluid import Fluid

if TYPE_CHECKING:
    from malleable.model import Workload

LEAST_CORES = 2.0
"""Below, one job at a time has all there is, and WHAM's order is the best. On two cores, where to widen one
job is to stop the other, it cost from 7.0 % less than WHAM to .4 % more on 30 random workloads, 1.5 % less on
average."""


class Outlook(NamedTuple):
    """What is to be expected of the market."""

    discount: float
    """α while no job has to wait: the rate at which a premium shrinks. 0: there is nothing to expect."""
    price: float
    """l*, the price in the long run."""
    spare: float
    """Cores that the arriving work leaves over, at which a queue drains."""


@dataclass(frozen=True)
class WhamDiscounted(Policy):
    """WHAM that expects shortages to end: low-value jobs may wait; `alpha` replaces its rule for the rate."""

    needs = "speedups, work left, rates, mean sizes"

    blocking: ClassVar[bool] = False
    alpha: Positive | None = None

    alternatives: ClassVar[dict[str, Any]] = {"discount": ("alpha", positive("discount"))}

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        expected = self.outlook(need.arrivals(workload), cores)
        return Program(discounted_rule, discounted_table(workload, cores, *expected))

    def outlook(self, workload: Workload, cores: float) -> Outlook:
        """The long-run price and the rate at which shortages end, by the rule or as given."""
        expected = _memoized_outlook(workload, checked_cores(cores))
        if self.alpha is None or expected.discount == 0.0:
            return expected
        return expected._replace(discount=self.alpha, spare=math.inf)


def outlook(workload: Workload, cores: float) -> Outlook:
    """Relaxation rate, long-run price and spare cores of WHAM's fluid equation with exponential sizes."""
    cores = checked_cores(cores)
    nothing = Outlook(0.0, 0.0, math.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        # As if jobs could have any width: what is expected of the market needs no more detail than that.
        plain = (c.of_type(JobType(c.name, c.speedup), c.name) for c in workload.classes)
        classes = tuple(replace(c, size=Exponential(1.0 / c.size.mean)) for c in plain)
        fluid = Fluid(replace(workload, classes=classes), Wham(), cores)
    narrow = fluid.buyers.least
    spare = cores - float(workload.loads @ (narrow / fluid.buyers.speedups(narrow)))
    if cores < LEAST_CORES or spare <= 0.0:
        return nothing
    try:
        point = fluid.fixed_point()
    except (InfeasibleError, UnsupportedError):
        return nothing
    slowest = float(np.linalg.eigvals(fluid.jacobian(point.state, point.market)).real.max())
    return Outlook(-slowest, point.price, spare) if slowest < 0.0 else nothing


_memoized_outlook = memoized(outlook)
