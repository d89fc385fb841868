"""The plan of `wham-improved` for a workload and a number of cores: fit, improve, fit again, and check.

The value function of size-blind WHAM is fitted and its improvement found; a second path, under that policy,
gives a better value function and a better policy, and so on. The first step takes away some 95 % of what WHAM
loses, the second most of the rest; a third is of use where the policy goes to crowds that WHAM never saw, for
a fit is trusted only where its path has been. All of it is on class counts, for exponential sizes of the same
means. Uniform numbers come from one seed, so that a workload has one plan.

The check is made on paths of the same uniform numbers: the improved policy must be cheaper than WHAM beyond
three standard errors, else the plan is to stay with WHAM, with a note that says why. Where arrivals are not
Poisson or sizes not exponential, it must stand a second check on jobs of the workload's own laws, whose sizes
are unknown: WHAM may learn from the work done so far what is left of a job.

What is gained can turn into a loss at another load, so last checks are made at loads 25 % higher and lower:
on paths, or on jobs where these count. If it would lose at the higher one, the value function is fitted again
at loads between, which gains less at the load told and loses less at the higher one, until it does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.contracts import Need
from malleable.distributions.exponential import Exponential
from malleable.errors import MalleableError
from malleable.model import checked_cores
from malleable.model.memoization import memoized
from malleable.policies.base.paired_trial import (
    BLIND_BATCH,
    HEADROOM,
    Trial,
    at_higher_load,
    at_lower_load,
    blind_trial,
    relative,
)
from malleable.policies.improved.count_value_fit import (
    EVENTS,
    Measured,
    improved_path,
    jobs_at_start,
    wham_path,
)
from malleable.policies.improved.job_rules import program, shares_in_time
from malleable.policies.wham import Wham
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.policies.improved.count_value import Value
    from malleable.policies.improved.count_value_fit import Fit

BY_JOB = Need(by_job=True)
TRIAL_SEED = 1301
"""Of a trial on jobs."""
RELAXATIONS = 100.0
"""Times that all jobs present must be replaced on a path for it to be long enough."""
STEPS = 3
SHARES = (0.4, 0.6, 0.8, 0.9, 1.0)
"""Of the way to a higher load, where it is fitted if it would lose at the higher one."""
MOST_CLASSES = 12
"""Classes up to which the coefficients, which grow with their square, are fitted in a second."""
SURE, LEAST = 3.0, 5e-4
"""The standard errors by which a gain must exceed 0, and the least that is worth it."""


class Plan(NamedTuple):
    """What was found: a value function to follow, or None to stay with WHAM."""

    value: Value | None
    gain: float
    """How much the policy saves by the check, as a share of WHAM's cost; 0 where it stays with WHAM."""
    error: float
    """The standard error of that."""
    note: str
    """Why it stays with WHAM; empty if it does not."""


def plan(workload: Workload, cores: float, headroom: float = HEADROOM) -> Plan:
    """The plan, made once for each workload and number of cores; `headroom` is that of `at_higher_load`."""
    return _kept(workload, checked_cores(cores), headroom)


def _made(workload: Workload, cores: float, headroom: float = HEADROOM) -> Plan:
    reason = _hopeless(workload, cores)
    if reason:
        return _stay(reason)
    present = jobs_at_start(workload, cores).sum()
    if RELAXATIONS * 2.0 * present > EVENTS:
        return _stay(f"{EVENTS} events are too few for {present:.0f} jobs; WHAM is close to optimal there")
    wham = wham_path(workload, cores)
    best, found, fit = wham, wham.fit.value, wham.fit
    reason = ""
    for _ in range(STEPS):
        reason = _unsound(fit)
        if reason:
            break
        step = improved_path(workload, cores, fit.value)
        if step.costs.mean() < best.costs.mean():
            best, found = step, fit.value
        fit = step.fit
    if best is wham:
        return _stay(reason or "a trial found no gain")
    made = _checked(workload, cores, found, relative(best.costs, wham.costs))
    higher, lower = at_higher_load(workload, cores, headroom), at_lower_load(workload, cores, headroom)
    if made.value is not None and higher is not None and _loses(higher, cores, made.value):
        made = _between(workload, higher, cores, made.value, wham)
    if made.value is not None and lower is not None and _loses(lower, cores, made.value):
        return _stay("it would lose if the load were lower than told")
    return made


def _between(workload: Workload, higher: Workload, cores: float, value: Value, wham: Measured) -> Plan:
    """A plan that is fitted to a load as little above that told as brings no loss at a higher one."""
    there = wham_path(higher, cores, EVENTS // 2)
    told, most = workload.load(cores), higher.load(cores)
    for share in SHARES:
        fit = improved_path(workload.at(cores, told + share * (most - told)), cores, value).fit
        if _unsound(fit):
            break
        value = fit.value
        # Counts are quickly asked, also where they do not say it all.
        trial = relative(improved_path(higher, cores, value, EVENTS // 2).costs, there.costs)
        if not trial.may_lose and (_as_fitted(higher, cores) or not _loses(higher, cores, value)):
            here = improved_path(workload, cores, value)
            return _checked(workload, cores, value, relative(here.costs, wham.costs))
    return _stay("it would lose if the load were higher than told")


def _loses(workload: Workload, cores: float, value: Value) -> bool:
    """Whether it may lose more against WHAM on this workload than can be tolerated."""
    if not _as_fitted(workload, cores):
        return _tried(workload, cores, value, BLIND_BATCH // 2).may_lose
    wham, ours = wham_path(workload, cores, EVENTS // 2), improved_path(workload, cores, value, EVENTS // 2)
    return relative(ours.costs, wham.costs).may_lose


def _checked(workload: Workload, cores: float, value: Value, trial: Trial) -> Plan:
    """The plan if it gains beyond doubt: in a trial on counts, and where these do not say it all, on jobs."""
    if trial.gains(SURE, LEAST) and not _as_fitted(workload, cores):
        trial = _tried(workload, cores, value, BLIND_BATCH)
    gain = -trial.difference
    if not trial.gains(SURE, LEAST):
        return _stay(f"a trial found a gain of {gain:.2%} ± {trial.error:.2%}, which is not beyond doubt")
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


def _unsound(fit: Fit) -> str:
    """Why a fit cannot be used; empty if it can."""
    if not all(np.isfinite(part).all() for part in fit.value):
        return "the fit has coefficients beyond the range of numbers"
    if fit.rank < fit.unknowns:
        return f"the fit is singular: the path decides {fit.rank} of {fit.unknowns} coefficients"
    return ""


def _tried(workload: Workload, cores: float, value: Value, batch: int) -> Trial:
    """A trial against WHAM on jobs of the workload's own laws, with so many in a batch."""
    programs = program(workload, cores, value, BY_JOB), Wham().program(workload, cores, BY_JOB)
    return blind_trial(workload, cores, *programs, TRIAL_SEED, batch)


def _as_fitted(workload: Workload, cores: float) -> bool:
    """Whether the chain of counts is the workload itself."""
    return shares_in_time(workload, cores) and all(
        type(one.size) is Exponential and one.arrivals.poisson for one in workload.classes
    )
