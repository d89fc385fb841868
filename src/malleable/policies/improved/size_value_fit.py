"""One step of policy improvement from `wham-discounted`: let it run, fit its value, try what that says.

A quadratic value function of remaining sizes is fitted to a path of the policy by least squares. The relative
value h of a policy that costs g per unit of time solves c·x − g + 𝒜h = 0 in every state. For
h = q·U + ½ UᵀQU (`size_value`) and Poisson arrivals

    𝒜U_ia = λ_i E φ_a(X) − Σ_j s_j φ_a′(r_j),        𝒜(UV) = U𝒜V + V𝒜U + λ_i E[φ_a φ_b(X)] for one class,

linear in g, q and Q. We make the square of the left-hand side, averaged over time, as small as can be.
Everything random comes from one seed, so the same workload and number of cores give the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

from malleable.engine.kernels.path_kernel import path
from malleable.engine.rule_interface import Program
from malleable.engine.speedup_table import encode
from malleable.errors import UnsupportedError
from malleable.policies.base.paired_trial import HEADROOM, at_higher_load, at_lower_load, trial_in_stages
from malleable.policies.improved.size_value import CURVED, FEATURE, FEATURES, fitted_rule
from malleable.policies.rules.discounted_market import discounted_table
from malleable.policies.rules.discounted_rule import discounted_rule
from malleable.policies.wham_discounted import outlook
from malleable.sources import stream

if TYPE_CHECKING:
    from malleable.contracts import Distribution, FloatArray, IntArray
    from malleable.engine.kernels.path_kernel import Path
    from malleable.model import Workload
    from malleable.policies.wham_discounted import Outlook


RIDGE = 1e-9
"""Added to the diagonal of the normal equations, which is scaled to 1."""
BLOCK = 4096
"""Moments whose equations are written out at once."""
BEYOND = 0.002
"""Share of the jobs that are larger than the rule looks at."""
NEVER = 1e-7
"""Share of the jobs that are larger than the fit looks at: it needs second moments, which may not exist."""
POINTS, DECADES = 8192, 9.0
"""The grid over which survival is integrated, and how far it reaches to both sides of the mean."""
DRAWS = 1 << 17
"""Sizes drawn of a law that does not say how likely a size is."""


class SizeMoments(NamedTuple):
    """E φ_a(X) and E φ_a(X)φ_b(X), and the largest sizes that are looked at.

    To cut sizes down in the fit as far as in the rule loses a lot: a large job would seem to cost the same
    for a long time, whatever is done about it.
    """

    cap: float
    """By the rule, to which the fit says little about larger ones."""
    reach: float
    """By the fit."""
    first: FloatArray
    second: FloatArray


def features(sizes: FloatArray, rates: FloatArray, mean: float) -> FloatArray:
    """The four features of each size, in columns."""
    return np.column_stack([-np.expm1(-np.multiply.outer(sizes, rates)), sizes / mean])


def slopes(sizes: FloatArray, rates: FloatArray, mean: float) -> FloatArray:
    """Their derivatives, in columns."""
    curved = rates * np.exp(-np.multiply.outer(sizes, rates))
    return np.column_stack([curved, np.full(len(sizes), 1.0 / mean)])


def size_moments(law: Distribution, rates: FloatArray) -> SizeMoments:
    """E f(X) = ∫ f′(r) P(X > r) dr for each feature and each product of two, or the same from a sample."""
    mean = law.mean
    grid = mean * np.concatenate([[0.0], np.geomspace(10.0**-DECADES, 10.0**DECADES, POINTS)])
    try:
        alive = np.asarray(law.survival(grid), dtype=float)
    except UnsupportedError:
        return _sampled(law, rates)
    cap = float(grid[max(int(np.argmax(alive <= BEYOND)), 1)])
    last = int(np.argmax(alive <= NEVER)) or len(grid) - 1
    grid, alive = grid[: last + 1], alive[: last + 1]
    value, slope = features(grid, rates, mean), slopes(grid, rates, mean)
    first = np.trapezoid(slope * alive[:, None], grid, axis=0)
    second = np.empty((FEATURES, FEATURES))
    for a in range(FEATURES):
        product = slope[:, [a]] * value + value[:, [a]] * slope
        second[a] = np.trapezoid(product * alive[:, None], grid, axis=0)
    return SizeMoments(cap, float(grid[-1]), first, second)


def _sampled(law: Distribution, rates: FloatArray) -> SizeMoments:
    sizes = np.asarray(law.sample(np.random.default_rng(CURVED), DRAWS), dtype=float)
    value = features(sizes, rates, law.mean)
    cap, reach = float(np.quantile(sizes, 1.0 - BEYOND)), float(sizes.max())
    return SizeMoments(cap, reach, value.mean(axis=0), value.T @ value / len(sizes))


class Class(NamedTuple):
    """What the fit knows of a class."""

    rate: float
    """Of arrivals."""
    cost: float
    mean: float
    decay_rates: FloatArray
    """1/t_a of the features that level off."""
    moments: SizeMoments


class Fit(NamedTuple):
    """The cost per unit of time and the coefficients of h."""

    cost: float
    linear: FloatArray
    quadratic: FloatArray
    mean_cost: float
    """The cost per unit of time on the path."""


def unknowns(classes: int) -> int:
    """Numbers that are fitted."""
    size = FEATURES * classes
    return 1 + size + size * (size + 1) // 2


def fit(path: Path, classes: list[Class]) -> Fit | None:
    """The value function of the policy whose path this is; None where the equations have no solution."""
    cost, sums, drifts, weights = _moments_in_time(path, classes)
    size = FEATURES * len(classes)
    rows, columns = np.triu_indices(size)
    jumps = _jumps(classes)[rows, columns] * np.where(rows == columns, 0.5, 1.0)
    normal, right = np.zeros((1 + size + len(rows),) * 2), np.zeros(1 + size + len(rows))
    for start in range(0, len(weights), BLOCK):
        part = slice(start, start + BLOCK)
        u, a, w = sums[part], drifts[part], weights[part]
        products = u[:, rows] * a[:, columns]
        products += np.where(rows == columns, 0.0, u[:, columns] * a[:, rows])
        equations = np.hstack([np.full((len(w), 1), -1.0), a, products + jumps])
        normal += equations.T @ (equations * w[:, None])
        right -= equations.T @ (w * cost[part])
    found = _solved(normal, right)
    if found is None:
        return None
    quadratic = np.zeros((size, size))
    quadratic[rows, columns] = quadratic[columns, rows] = found[1 + size :]
    return Fit(float(found[0]), found[1 : 1 + size], quadratic, float(weights @ cost))


def _solved(normal: FloatArray, right: FloatArray) -> FloatArray | None:
    """The solution of the scaled normal equations with a little ridge."""
    scale = np.sqrt(np.diag(normal))
    scale[scale == 0.0] = 1.0
    scaled = normal / np.multiply.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] += RIDGE
    try:
        found = linalg.solve(scaled, right / scale, assume_a="pos") / scale
    except (linalg.LinAlgError, linalg.LinAlgWarning, ValueError):
        return None
    return found if np.isfinite(found).all() else None


def _moments_in_time(
    path: Path, classes: list[Class]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Cost rate, U and 𝒜U at each moment, and the share of time that the moment stands for."""
    moments, size = len(path.durations), FEATURES * len(classes)
    cost, sums, drifts = np.zeros(moments), np.zeros((moments, size)), np.zeros((moments, size))
    for i, own in enumerate(classes):
        mine = path.classes == i
        when, left, fast = path.moments[mine], path.remaining[mine], path.speeds[mine]
        cost += own.cost * np.bincount(when, minlength=moments)
        short = np.minimum(left, own.moments.reach)
        value = features(short, own.decay_rates, own.mean)
        lost = slopes(short, own.decay_rates, own.mean) * (fast * (left <= own.moments.reach))[:, None]
        for a in range(FEATURES):
            at = FEATURES * i + a
            sums[:, at] = np.bincount(when, value[:, a], moments)
            drifts[:, at] = own.rate * own.moments.first[a] - np.bincount(when, lost[:, a], moments)
    return cost, sums, drifts, path.durations / path.durations.sum()


def _jumps(classes: list[Class]) -> FloatArray:
    """λ_i E[φ_a φ_b(X)] in the blocks of the classes, 0 elsewhere."""
    blocks = [own.rate * own.moments.second for own in classes]
    return np.asarray(linalg.block_diag(*blocks), dtype=float)


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
