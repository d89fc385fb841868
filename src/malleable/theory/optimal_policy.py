"""The best policy of all, at small n: the Markov decision process of malleable jobs, solved.

With Poisson arrivals and exponential sizes the class counts are all that a policy blind to sizes can know, so
the best of these policies divides the cores by the class counts z alone. Its cost per unit of time g and its
relative values h(z) (what it costs to start from z and not from the empty system) solve the optimality
equation, with a_p cores for part p (a class) and R_p the most speed that they give its jobs together:

    g = c(z) + Σ_p λ_p [h(z + e_p) − h(z)] − max_a Σ_p R_p(z_p, a_p) · μ_p [h(z) − h(z − e_p)]    for all z.

For *any* function h the right-hand side B(z) brackets the optimum, min_z B ≤ g ≤ max_z B, and the policy
that takes the maximum in every state costs at most max_z B (Puterman, *Markov Decision Processes*, 1994,
§8.5). Policy iteration (Howard 1960) closes the bracket: solve the linear equations of a policy for its g
and h (`theory.decision_process`), let every state take its best division at these h
(`theory.core_division`), and so on. Four or five rounds do.

**Phase-type sizes.** Here the parts are pairs of class and phase, and the policy *sees the phase* of every
job, which no policy blind to sizes does. Its optimum is a lower bound on theirs (`sees_phases`), in general
attained by none of them. It is no bound for policies that know the sizes, as WHAM does when jobs outnumber
cores: these may cost less, with exponential sizes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from malleable.contracts import FloatArray
from malleable.errors import ParameterError
from malleable.model import checked_cores
from malleable.theory.core_division import RealCores, WholeCores
from malleable.theory.decision_process import Lost, Process, phases
from malleable.theory.markov_chain import IntArray, Lattice
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.model import Workload

RARE, GROWTH = 1e-6, 1.25
"""Mass at the limit that is low enough, and by how much a limit is raised until it is."""
SAME = 1e-11
"""Difference of two policies' speeds below which they are one: what is left of the bracket is rounding."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The least cost on the truncated chain, and a policy that attains it."""

    cost: float
    """Mean holding cost per job of the policy below (with the charge for lost jobs, if any)."""
    low: float
    """No policy that is blind to sizes costs less, on this chain."""
    high: float
    """The policy below costs no more."""
    jobs: FloatArray
    """E[Z_i] of each class."""
    mass_at_limit: float
    """P(N = limit): the share of arrivals that the truncation loses."""
    widths: str
    """`whole` or `real`."""
    lost: str
    """`charged` or `free`."""
    cores: FloatArray = field(repr=False)
    """The policy: cores of each part in each state of the lattice, shared by the part's jobs."""
    speeds: FloatArray = field(repr=False)
    """Total speed of each part in each state."""
    values: FloatArray = field(repr=False)
    """Relative values h, in cost (not per job)."""
    lattice: Lattice = field(repr=False)
    owner: IntArray = field(repr=False)
    """The class of each part."""
    rounds: int
    tolerance: float

    @property
    def limit(self) -> int:
        """The number of jobs at which arrivals are lost."""
        return self.lattice.limit

    @property
    def sees_phases(self) -> bool:
        """Whether the policy sees phases, so that its cost is a lower bound for policies blind to sizes."""
        return len(np.unique(self.owner)) < len(self.owner)

    @property
    def warning(self) -> str:
        """Why these numbers should not be trusted to all digits, and what to do; empty if they may be."""
        if self.high - self.low > self.tolerance * self.high:
            return f"not converged: the optimum lies in [{self.low:.9g}, {self.high:.9g}]; allow more rounds"
        if self.mass_at_limit > RARE:
            return (
                f"truncated: {self.mass_at_limit:.1e} of the arrivals find {self.limit} jobs; enlarge limit"
            )
        return ""

    def cores_at(self, *state: int) -> FloatArray:
        """The cores of each part when this many jobs of each part are present."""
        vector = np.asarray(state, dtype=np.int64)
        if vector.shape != self.owner.shape or vector.min() < 0 or vector.sum() > self.limit:
            parts = len(self.owner)
            raise ParameterError(f"no state {state!r:.60} of {parts} parts and at most {self.limit} jobs")
        return np.asarray(self.cores[self.lattice.index(vector[None, :])[0]])


def optimum(
    workload: Workload,
    cores: float,
    limit: int | None = None,
    *,
    widths: Literal["whole", "real"] = "whole",
    lost: Lost = "charged",
    tolerance: float = 1e-8,
    max_rounds: int = 60,
    max_states: int = 100_000,
) -> Optimum:
    """The optimal policy of a workload with Poisson arrivals and phase-type sizes, with at most `limit` jobs.

    `widths` says what may be given: whole cores to every job, or any widths (a superset). `lost` says what a
    job costs that finds the system full (see `theory.decision_process`). Without a `limit` it is raised
    until next to nothing is lost, or `max_states` are reached; at a load of 1 or more a limit must be given.
    """
    if widths not in {"whole", "real"}:
        raise ParameterError(f"widths must be 'whole' or 'real', got {widths!r:.60}")
    cores, load = checked_cores(cores), workload.load(cores)
    if limit is not None:
        return _solved(
            Process(workload, cores, limit, lost, max_states), cores, widths, tolerance, max_rounds
        )
    if load >= 1.0:
        raise ParameterError(f"the load is {load:.4g}, so no limit is high enough", "give one, or more cores")
    most = _highest_limit(sum(len(phases(job_class)[0]) for job_class in workload.classes), max_states)
    limit = min(most, _first_limit(workload, cores))
    while True:
        process = Process(workload, cores, limit, lost, max_states)
        found = _solved(process, cores, widths, tolerance, max_rounds)
        if found.mass_at_limit <= RARE or limit >= most:
            return found
        limit = min(most, math.ceil(GROWTH * limit))


def _first_limit(workload: Workload, cores: float) -> int:
    """A first guess: the jobs of the relaxed problem, their scatter, and most of the tail of M/M/n."""
    present = sum(one.jobs for one in bound(workload, cores).classes)
    tail = math.log(RARE) / math.log(workload.load(cores))
    return math.ceil(5.0 + min(present + 4.0 * math.sqrt(present), cores) + 0.7 * tail)


def _highest_limit(parts: int, max_states: int) -> int:
    """The largest number of jobs with at most that many states."""
    limit = 1
    while math.comb(limit + 1 + parts, parts) <= max_states:
        limit += 1
    return limit


def _solved(process: Process, cores: float, widths: str, tolerance: float, max_rounds: int) -> Optimum:
    """Policy iteration until the bracket is closed, or nothing changes any more."""
    workload, states = process.workload, process.lattice.states
    speedups = [workload.speedups[i] for i in process.owner]
    sharing = (WholeCores if widths == "whole" else RealCores)(speedups, states, cores)
    # GREEDY on the rate of work is stable at any load below 1: a sound first policy.
    chosen = sharing.best(np.ones(states.shape))
    low, rounds = -math.inf, 0
    while True:
        values = process.values(chosen.speeds)
        gains = process.gains(values)
        before, chosen = chosen, sharing.best(gains)
        right = process.costs + process.arrivals @ values - (gains * chosen.speeds).sum(axis=1)
        # Every round's lower bound is one; the upper bound belongs to the policy at hand.
        low, high, rounds = max(low, float(right.min())), float(right.max()), rounds + 1
        settled = np.allclose(chosen.speeds, before.speeds, SAME, SAME)
        if settled or high - low <= tolerance * high or rounds >= max_rounds:
            break
    found, rate = process.evaluation(chosen.speeds), workload.total_rate
    return Optimum(
        cost=found.cost,
        low=low / rate,
        high=high / rate,
        jobs=found.jobs,
        mass_at_limit=found.mass_at_limit,
        widths=widths,
        lost=process.lost,
        cores=chosen.cores,
        speeds=chosen.speeds,
        values=values,
        lattice=process.lattice,
        owner=process.owner,
        rounds=rounds,
        tolerance=tolerance,
    )
