"""The plan of `wham-improved` for a workload and a number of cores: fit, improve, fit again, and check.

The value function of size-blind WHAM is fitted and its improvement found; a second path, under that policy,
gives a better value function and a better policy, and so on. The first step takes away some 95 % of what WHAM
loses, the second most of the rest; a third is of use where the policy goes to crowds that WHAM never saw, for
a fit is trusted only where its path has been. All of it is on class counts, for exponential sizes of the same
means. Uniform numbers come from one seed, so that a workload has one plan.

The check is made on paths of the same uniform numbers: the improved policy must be cheaper than WHAM beyond
three standard errors, else the plan is to stay with WHAM, with a note that says why. Where arrivals are not
Poisson or sizes not exponential, it must stand a second check on jobs of the workload's own laws, whose sizes
are unknown: WHAM may learn from the work done so far what is left of a job. What such jobs gain can turn into
a loss at a higher load, so a third check is made at a load 25 % higher. Exponential ones lose less than 1 %
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.distributions.exponential import Exponential
from malleable.engine.kernels.count_kernel import Visits, follow
from malleable.errors import MalleableError
from malleable.model import checked_cores
from malleable.policies.base.memoization import memoized
from malleable.policies.base.paired_trial import (
    BLIND_BATCH,
    HEADROOM,
    Trial,
    at_higher_load,
    blind_trial,
    relative,
)
from malleable.policies.improvement.programs import job_program, shares_in_time
from malleable.policies.improvement.quadratic_fit import Chain, Fit, bellman, fitted
from malleable.policies.rules.blind_wham import blind_wham
from malleable.policies.rules.improved_rule import improved_rule
from malleable.policies.rules.value_table import Value, value_table
from malleable.policies.wham import Wham
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload

EVENTS, SEED, TRIAL_SEED = 100_000, 13, 1301
"""Jumps of a path that is fitted, the seed of its uniform numbers, and that of a trial on jobs."""
WARM_UP = 0.05
"""Share of a path that is left out at its start, at the jobs of the relaxed problem."""
RELAXATIONS = 100.0
"""Times that all jobs present must be replaced on a path for it to be long enough."""
STEPS = 3
MOST_CLASSES = 12
"""Classes up to which the coefficients, which grow with their square, are fitted in a second."""
BATCHES, SURE, LEAST = 40, 3.0, 5e-4
"""Batches of a path, the standard errors by which a gain must exceed 0, and the least that is worth it."""


class Plan(NamedTuple):
    """What was found: a value function to follow, or None to stay with WHAM."""

    value: Value | None
    gain: float
    """How much the policy saves by the check, as a share of WHAM's cost; 0 where it stays with WHAM."""
    error: float
    """The standard error of that."""
    note: str
    """Why it stays with WHAM; empty if it does not."""


class _Measured(NamedTuple):
    """A path under a policy: the fit of its value, and its cost rate batch by batch."""

    fit: Fit
    costs: FloatArray


def plan(workload: Workload, cores: float, headroom: float = HEADROOM) -> Plan:
    """The plan, made once for each workload and number of cores; `headroom` is that of `at_higher_load`."""
    return _kept(workload, checked_cores(cores), headroom)


def _made(workload: Workload, cores: float, headroom: float = HEADROOM) -> Plan:
    reason = _hopeless(workload, cores)
    if reason:
        return _stay(reason)
    chain = _chain(workload, cores)
    start = np.floor([one.jobs for one in bound(workload, cores).classes])
    if RELAXATIONS * 2.0 * start.sum() > EVENTS:
        return _stay(
            f"{EVENTS} events are too few for {start.sum():.0f} jobs; WHAM is close to optimal there"
        )
    rule, table = blind_wham(workload, cores)
    wham = _measured(chain, rule, table, start)
    best, found, fit = wham, wham.fit.value, wham.fit
    reason = ""
    for _ in range(STEPS):
        reason = _unsound(fit)
        if reason:
            break
        step = _measured(chain, improved_rule, value_table(workload, cores, fit.value), start)
        if step.costs.mean() < best.costs.mean():
            best, found = step, fit.value
        fit = step.fit
    if best is wham:
        return _stay(reason or "a trial found no gain")
    return _checked(workload, cores, found, relative(best.costs, wham.costs), headroom)


def _checked(workload: Workload, cores: float, value: Value, trial: Trial, headroom: float) -> Plan:
    """The plan if it stands the checks: a trial on counts, and where these do not say it all, two on jobs."""
    fitted_for = _as_fitted(workload, cores)
    if trial.gains(SURE, LEAST) and not fitted_for:
        trial = _tried(workload, cores, value, BLIND_BATCH)
    gain = -trial.difference
    if not trial.gains(SURE, LEAST):
        return _stay(f"a trial found a gain of {gain:.2%} ± {trial.error:.2%}, which is not beyond doubt")
    higher = None if fitted_for else at_higher_load(workload, cores, headroom)
    if higher is not None and _tried(higher, cores, value, BLIND_BATCH // 2).may_lose:
        return _stay("it would lose if the load were higher than told")
    return Plan(value, gain, trial.error, "")


_kept = memoized(_made)


def _stay(reason: str) -> Plan:
    return Plan(None, 0.0, 0.0, f"wham-improved stays with WHAM: {reason}")


def _hopeless(workload: Workload, cores: float) -> str:
    """Why there is nothing to fit; empty if there is."""
    m = len(workload.classes)
    if m == 1:
        return "with one class there is nothing to weigh"
    if m > MOST_CLASSES:
        return f"{m} classes have too many coefficients to fit, more than {MOST_CLASSES} classes"
    if cores < 2.0:
        return "on one core there is nothing to divide"
    silent = [one.name for one in workload.classes if not one.arrivals.rate > 0.0]
    if silent:
        return f"class {silent[0]!r} never arrives, so what its jobs cost cannot be learned"
    try:
        bound(workload, cores)
    except MalleableError as error:
        return error.problem
    return ""


def _chain(workload: Workload, cores: float) -> Chain:
    """The chain of counts in the unit of time of its arrivals, and of cost of the largest."""
    unit = workload.total_rate
    costs = workload.holding_costs / workload.holding_costs.max()
    least = np.array([float(s.most_efficient) for s in workload.speedups])
    return Chain(cores, workload.rates / unit, 1.0 / (workload.mean_sizes * unit), costs, least)


def _unsound(fit: Fit) -> str:
    """Why a fit cannot be used; empty if it can."""
    if not all(np.isfinite(part).all() for part in fit.value):
        return "the fit has coefficients beyond the range of numbers"
    if fit.rank < fit.unknowns:
        return f"the fit is singular: the path decides {fit.rank} of {fit.unknowns} coefficients"
    return ""


def _measured(chain: Chain, rule: Callable[..., None], table: FloatArray, start: FloatArray) -> _Measured:
    """Follow a policy, fit its value, and average what its states cost under that fit."""
    uniforms = np.random.default_rng(SEED).random(EVENTS)
    path = follow(rule, table, chain.cores, chain.arrival_rates, chain.service_rates, uniforms, start)
    path = Visits(*(part[int(WARM_UP * EVENTS) :] for part in path))
    fit = fitted(chain, path)
    length = len(path.times) // BATCHES
    states = bellman(chain, path, fit.value)[: BATCHES * length].reshape(BATCHES, length)
    times = path.times[: BATCHES * length].reshape(BATCHES, length)
    return _Measured(fit, (states * times).sum(axis=1) / times.sum(axis=1))


def _tried(workload: Workload, cores: float, value: Value, batch: int) -> Trial:
    """A trial against WHAM on jobs of the workload's own laws, with so many in a batch."""
    programs = job_program(workload, cores, value), Wham().job_program(workload, cores)
    return blind_trial(workload, cores, *programs, TRIAL_SEED, batch)


def _as_fitted(workload: Workload, cores: float) -> bool:
    """Whether the chain of counts is the workload itself."""
    return shares_in_time(workload, cores) and all(
        type(one.size) is Exponential and one.arrivals.kind == "poisson" for one in workload.classes
    )
