"""One step of policy improvement from `wham-discounted`: let it run, fit its value, try what that says.

Everything random comes from one seed, so the same workload and number of cores give the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.kernels.path_kernel import path
from malleable.engine.rule_interface import Program
from malleable.engine.speedup_table import encode
from malleable.policies.base.paired_trial import HEADROOM, at_higher_load, at_lower_load, trial_in_stages
from malleable.policies.fitted.size_value import FEATURE, fitted_rule
from malleable.policies.fitted.size_value_fit import Class, Fit, fit, size_moments, unknowns
from malleable.policies.rules.discounted_market import discounted_table
from malleable.policies.rules.discounted_rule import discounted_rule
from malleable.policies.wham_discounted import outlook
from malleable.sources import stream

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.engine.kernels.path_kernel import Path
    from malleable.model import Workload
    from malleable.policies.wham_discounted import Outlook

SEED = 20_251_116
SPANS = np.array([0.1, 0.4, 1.6])
"""Scales of the features that level off, in times that a shortage lasts."""
MOMENTS, MOMENTS_PER_UNKNOWN = 60_000, 400
"""Moments of the path at least, and for each number that is fitted."""
LEAST_MOMENTS, LEAST_JOBS = 20, 50
"""With fewer moments for each unknown, or fewer jobs of a class, there is no fit."""
MOST_CLASSES = 8
"""With more classes the fit would take too long and too many jobs."""
RARE, CROWD = 0.05, 3.0
"""Share of time with more jobs than the rule asks the fit about, if these are more than the cores, and the
most of these per core."""
ENOUGH = 1.0
"""Standard errors by which a gain must exceed 0 in the trial."""
ASTRAY = 0.2
"""How far the fitted cost may be from that of the path."""


class Improvement(NamedTuple):
    """The numbers behind those of `wham-discounted` in the table; none where it steps back."""

    numbers: FloatArray | None
    reason: str = ""
    """Why it steps back."""
    broken: bool = False
    """Whether it steps back because the fit is no good, and not because it would gain nothing."""
    difference: float = np.nan
    """By which share the cost changed in the trial."""
    error: float = np.nan
    """The standard error of this."""


def improvement(
    workload: Workload,
    cores: float,
    expected: Outlook,
    moments: int | None = None,
    headroom: float = HEADROOM,
    *,
    trial: bool = True,
) -> Improvement:
    """The fitted value function, tried on jobs that it was not fitted to, and at other loads."""
    hopeless = _hopeless(workload, expected)
    if hopeless:
        return Improvement(None, hopeless)
    for_path, for_draws, *for_trials = np.random.SeedSequence(SEED).spawn(5)
    base = Program(discounted_rule, discounted_table(workload, cores, *expected))
    fitted = unknowns(len(workload.classes))
    enough = max(MOMENTS, MOMENTS_PER_UNKNOWN * fitted)
    wanted = enough if moments is None else max(moments, LEAST_MOMENTS * fitted)
    jobs = stream(workload, for_path, 3 * wanted // 5).take()
    draws = np.random.default_rng(for_draws).random(wanted)
    encoded = encode(workload.speedups, widest=max(cores, 2.0))
    seen = path(base, encoded, workload.holding_costs, cores, jobs, draws)
    few = _too_few(seen, np.bincount(jobs.classes, minlength=len(workload.classes)), workload)
    if few:
        return Improvement(None, few, broken=True)
    classes = classes_of(workload, expected)
    found = fit(seen, classes)
    if found is None or not abs(found.cost - found.mean_cost) <= ASTRAY * found.mean_cost:
        return Improvement(None, "the equations of its value function have no good solution", broken=True)
    most = most_jobs(seen, cores) if headroom > 1.0 else CROWD * cores
    numbers = value_numbers_of(workload, cores, classes, found, most)
    if not trial:
        return Improvement(numbers)
    return _tried(workload, cores, base, numbers, for_trials, min(wanted / enough, 1.0), headroom)


def _tried(
    workload: Workload,
    cores: float,
    base: Program,
    numbers: FloatArray,
    seeds: list[np.random.SeedSequence],
    effort: float,
    headroom: float,
) -> Improvement:
    """Whether it gains at the load that it was fitted to, and does not lose at a higher and a lower one."""
    trial = trial_in_stages(workload, cores, _improved(base, numbers), base, seeds[0], effort)
    if not trial.gains(ENOUGH):
        return Improvement(None, "a short simulation shows no gain", False, *trial)
    others = at_higher_load(workload, cores, headroom), at_lower_load(workload, cores, headroom)
    for other, word, seed in zip(others, ("higher", "lower"), seeds[1:], strict=True):
        if other is not None:
            true = Program(discounted_rule, discounted_table(other, cores, *outlook(other, cores)))
            test = trial_in_stages(other, cores, _improved(true, numbers), true, seed, effort)
            if test.may_lose:
                return Improvement(None, f"it would lose if the load were {word} than told", False, *test)
    return Improvement(numbers, "", False, *trial)


def _improved(base: Program, numbers: FloatArray) -> Program:
    """The program of `wham-discounted` with the numbers of the fit."""
    return Program(fitted_rule, np.concatenate([base.table, numbers]))


def _hopeless(workload: Workload, expected: Outlook) -> str:
    """Why there is nothing to fit, if so."""
    from malleable.engine.compiling import can_compile  # noqa: PLC0415 - loads numba

    if expected.discount == 0.0:
        return "at this load, or on so few cores, there is no shortage that ends"
    if len(workload.classes) > MOST_CLASSES:
        return f"a value function of more than {MOST_CLASSES} classes is too large to fit"
    return "" if can_compile() else "without compiled code the fit would take minutes"


def _too_few(seen: Path, arrivals: IntArray, workload: Workload) -> str:
    """What is missing for a fit, if anything."""
    if len(seen.durations) < LEAST_MOMENTS * unknowns(len(workload.classes)):
        return "the jobs present are too many for a fit"
    rare = [name for name, own in zip(workload.class_names, arrivals, strict=True) if own < LEAST_JOBS]
    return f"too few jobs of {', '.join(rare)} arrive for a fit" if rare else ""


def classes_of(workload: Workload, expected: Outlook) -> list[Class]:
    """What the fit knows of the classes; the scales are the work done on a job while a shortage lasts."""
    made = []
    for own, rate in zip(workload.classes, workload.rates, strict=True):
        width = float(own.speedup.demand(expected.price, own.holding_cost))
        decay_rates = expected.discount / (SPANS * float(own.speedup(width)))
        moments = size_moments(own.size, decay_rates)
        made.append(Class(float(rate), own.holding_cost, own.size.mean, decay_rates, moments))
    return made


def most_jobs(seen: Path, cores: float) -> float:
    """The number of jobs beyond which the path says little: rarely reached, at least n and at most 3n."""
    present = np.bincount(seen.moments, minlength=len(seen.durations))
    order = np.argsort(present, kind="stable")
    time = np.cumsum(seen.durations[order])
    at = min(int(np.searchsorted(time, (1.0 - RARE) * time[-1])), len(order) - 1)
    return min(max(float(present[order[at]]), cores), CROWD * cores)


def value_numbers_of(
    workload: Workload, cores: float, classes: list[Class], found: Fit, most: float
) -> FloatArray:
    """The numbers of `size_value`."""
    rows = np.empty((len(classes), len(FEATURE)))
    for row, own, speedup in zip(rows, classes, workload.speedups, strict=True):
        widest = min(max(cores, 1.0), float(speedup.peak))
        row[:] = [*own.decay_rates, 1.0 / own.mean, own.moments.cap, 1.0 / float(speedup(widest)), own.cost]
    return np.concatenate([[most], rows.ravel(), found.linear, found.quadratic.ravel()])
