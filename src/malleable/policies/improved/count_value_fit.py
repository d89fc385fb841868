"""A quadratic value function of the class counts, fitted to size-blind WHAM by least squares.

The relative value h of a policy that costs g per unit of time solves, in every state x,

    c·x − g + Σ_i λ_i [h(x + e_i) − h(x)] − Σ_i r_i(x) [h(x) − h(x − e_i)] = 0

with r_i its departure rates. For h as in `count_value` the left-hand side is linear in g and in the
coefficients, so we let the policy run and make its square, weighted by the time in each state, as small as
can be. The rates are exact and the expectation over the next jump is written out: nothing but the choice of
states is random, and the estimate has no bias from noise.

The second regime is fitted as the difference of its features at u and at x, which vanishes while N ≤ n. Where
hardly any state lies beyond, it is left out.

Paths of class counts under a policy say what it costs, batch by batch, and are what is fitted to. Uniform
numbers come from one seed, so that paths of two policies see the same.

The first path is that of WHAM on class counts alone, at any number of jobs. While the least widths of all
jobs fit, WHAM looks at counts only. Beyond, it serves by c/x; blind to sizes that is c_i/E[X_i], class after
class, and the last class that is served shares its cores in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.kernels.count_kernel import Visits, follow
from malleable.engine.speedup_table import most_efficient
from malleable.policies.improved.count_value import Value, improved_rule, value_table
from malleable.policies.rules.class_rules import market_table, quadratic_rule, quadratic_table, wham_rule
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload


RIDGE = 1e-9
"""Of the largest singular value of the scaled equations: directions below it are left at 0."""
CROWDED = 20
"""States beyond the cores, per coefficient, that the second regime takes to be fitted."""
SEEN = 0.9999
"""Share of the time that must be spent in smaller crowds for the fit to be trusted in one."""


class Chain(NamedTuple):
    """The chain of class counts; costs are in multiples of the largest, `least` has the least widths."""

    cores: float
    arrival_rates: FloatArray
    service_rates: FloatArray
    holding_costs: FloatArray
    least: FloatArray


class Fit(NamedTuple):
    """A fitted value function, what the policy costs per unit of time by the fit, and whether it is sound."""

    value: Value
    cost: float
    rank: int
    """Directions in which the equations say something."""
    unknowns: int
    crowded: bool
    """Whether the second regime was fitted."""


def fitted(chain: Chain, visits: Visits) -> Fit:
    """The value function of the policy whose path this is."""
    m = len(chain.arrival_rates)
    features = m + m * (m + 1) // 2
    beyond = int((visits.counts.sum(axis=1) > chain.cores).sum())
    crowded = beyond > CROWDED * features
    visits = visits.merged()
    weights = np.sqrt(visits.times / visits.times.sum())[:, None]
    columns = drift(chain, visits, crowded=crowded)
    matrix = np.hstack([-np.ones((len(columns), 1)), columns]) * weights
    right = -(visits.counts @ chain.holding_costs) * weights[:, 0]
    solution, rank = _least_squares(matrix, right)
    parts = np.split(solution[1:], [features]) if crowded else (solution[1:], np.zeros(features))
    first, second = (_unpacked(part, m) for part in parts)
    value = Value(first[0] - second[0], first[1] - second[1], *second, _trusted(chain, visits))
    return Fit(value, float(solution[0]), rank, matrix.shape[1], crowded)


def _trusted(chain: Chain, visits: Visits) -> float:
    """The largest crowd, but for a small share of the time, and at least the one that just has cores."""
    crowds = visits.counts @ chain.least / chain.cores
    order = np.argsort(crowds)
    shares = np.cumsum(visits.times[order])
    return max(1.0, float(crowds[order][np.searchsorted(shares, SEEN * shares[-1])]))


def _least_squares(matrix: FloatArray, right: FloatArray) -> tuple[FloatArray, int]:
    """The solution of least size in multiples of the columns' lengths, and the rank."""
    lengths = np.linalg.norm(matrix, axis=0)
    lengths[lengths == 0.0] = 1.0
    # A triangle has all that the tall matrix says, to full precision.
    triangle = np.asarray(np.linalg.qr(np.column_stack([matrix / lengths, right]), mode="r"))
    solution, _, rank, _ = np.linalg.lstsq(triangle[:, :-1], triangle[:, -1], rcond=RIDGE)
    return solution / lengths, int(rank)


def drift(chain: Chain, visits: Visits, *, crowded: bool) -> FloatArray:
    """What the generator makes of each feature in each state visited, features in columns.

    The features are x_i, then ½x_i² and x_i x_j for i < j, row by row of the upper triangle; behind them, if
    `crowded`, the same of u less those of x.
    """
    ones = np.ones(len(visits.times))
    plain = _drift_of_scaled(chain, visits, ones, ones, ones)
    if not crowded:
        return plain
    return np.hstack([plain, _drift_of_scaled(chain, visits, *_crowd_scales(chain, visits)) - plain])


def _drift_of_scaled(
    chain: Chain, visits: Visits, here: FloatArray, more: FloatArray, less: FloatArray
) -> FloatArray:
    """The drift of the features of t·x; t is `here`, `more` after an arrival and `less` after a departure.

    An arrival makes t x into t₊ (x + e_i), so with Λ and R the total rates of both kinds of jump,

        𝒜(t x) = [Λ(t₊ − t) + R(t₋ − t)] x + t₊ λ − t₋ r
        𝒜(t² x xᵀ) = [Λ(t₊² − t²) + R(t₋² − t²)] x xᵀ
                     + t₊² (λ xᵀ + x λᵀ + diag λ) − t₋² (r xᵀ + x rᵀ − diag r).
    """
    x, up, down = visits.counts, chain.arrival_rates, visits.departures
    rows, columns = np.triu_indices(x.shape[1])
    arriving, leaving = up.sum(), down.sum(axis=1)
    change = arriving * (more - here) + leaving * (less - here)
    linear = change[:, None] * x + more[:, None] * up - less[:, None] * down
    change = arriving * (more**2 - here**2) + leaving * (less**2 - here**2)
    moved = more[:, None] ** 2 * up - less[:, None] ** 2 * down
    products = change[:, None] * (x[:, rows] * x[:, columns])
    products += moved[:, rows] * x[:, columns] + x[:, rows] * moved[:, columns]
    own = rows == columns
    products[:, own] += more[:, None] ** 2 * up + less[:, None] ** 2 * down
    products[:, own] *= 0.5
    return np.hstack([linear, products])


def _unpacked(coefficients: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """The linear and the symmetric quadratic part."""
    matrix = np.zeros((m, m))
    matrix[np.triu_indices(m)] = coefficients[m:]
    return coefficients[:m], matrix + np.triu(matrix, 1).T


def bellman(chain: Chain, visits: Visits, value: Value) -> FloatArray:
    """c·x plus the drift of h in each state: its mean over a policy's own path is that policy's cost rate.

    Under a value function that is nearly right it hardly varies, so a short path tells the cost to many
    digits.
    """
    plain = _drift_of_form(chain, visits, value.linear, value.quadratic, 1.0, 1.0, 1.0)
    scales = _crowd_scales(chain, visits)
    crowded = _drift_of_form(chain, visits, value.crowded_linear, value.crowded_quadratic, *scales)
    return np.asarray(visits.counts @ chain.holding_costs + plain + crowded)


def _crowd_scales(chain: Chain, visits: Visits) -> tuple[FloatArray, FloatArray, FloatArray]:
    """min(1, n/N) in each state, after an arrival and after a departure."""
    jobs = visits.counts.sum(axis=1)
    here, more, less = (chain.cores / np.maximum(jobs + step, chain.cores) for step in (0.0, 1.0, -1.0))
    return here, more, less


def _drift_of_form(
    chain: Chain,
    visits: Visits,
    linear: FloatArray,
    quadratic: FloatArray,
    here: FloatArray | float,
    more: FloatArray | float,
    less: FloatArray | float,
) -> FloatArray:
    """The drift of q·tx + ½ t² xᵀPx: `_drift_of_scaled` times the coefficients, without its many columns."""
    x, up, down = visits.counts, chain.arrival_rates, visits.departures
    slope, own = x @ quadratic, 0.5 * np.diag(quadratic)
    arriving, leaving = up.sum(), down.sum(axis=1)
    once = arriving * (more - here) + leaving * (less - here)
    twice = arriving * (more**2 - here**2) + leaving * (less**2 - here**2)
    drift = once * (x @ linear) + 0.5 * twice * (x * slope).sum(axis=1)
    drift += more * (up @ linear) - less * (down @ linear)
    drift += more**2 * (slope @ up + own @ up) - less**2 * ((down * slope).sum(axis=1) - down @ own)
    return np.asarray(drift)


EVENTS, SEED = 100_000, 13
"""Jumps of a path, and the seed of its uniform numbers."""
WARM_UP = 0.05
"""Share of a path that is left out at its start, at the jobs of the relaxed problem."""
BATCHES = 40
"""Batches of a path."""


class Measured(NamedTuple):
    """A path under a policy: the fit of its value, and its cost rate batch by batch."""

    fit: Fit
    costs: FloatArray


def wham_path(workload: Workload, cores: float, events: int = EVENTS) -> Measured:
    """A path of size-blind WHAM."""
    return _followed(workload, cores, *blind_wham(workload, cores), events)


def improved_path(workload: Workload, cores: float, value: Value, events: int = EVENTS) -> Measured:
    """A path of GREEDY under a value function."""
    return _followed(workload, cores, improved_rule, value_table(workload, cores, value), events)


def _followed(
    workload: Workload, cores: float, rule: Callable[..., None], table: FloatArray, events: int
) -> Measured:
    """Follow a policy, fit its value, and average what its states cost under that fit."""
    uniforms = np.random.default_rng(SEED).random(events)
    chain, start = chain_of(workload, cores), jobs_at_start(workload, cores)
    path = follow(rule, table, cores, chain.arrival_rates, chain.service_rates, uniforms, start)
    path = Visits(*(part[int(WARM_UP * events) :] for part in path))
    fit = fitted(chain, path)
    length = len(path.times) // BATCHES
    states = bellman(chain, path, fit.value)[: BATCHES * length].reshape(BATCHES, length)
    times = path.times[: BATCHES * length].reshape(BATCHES, length)
    return Measured(fit, (states * times).sum(axis=1) / times.sum(axis=1))


def chain_of(workload: Workload, cores: float) -> Chain:
    """The chain of counts in the unit of time of its arrivals, and of cost of the largest."""
    unit = workload.total_rate
    costs = workload.holding_costs / workload.holding_costs.max()
    least = np.array([float(s.most_efficient) for s in workload.speedups])
    return Chain(cores, workload.rates / unit, 1.0 / (workload.mean_sizes * unit), costs, least)


def jobs_at_start(workload: Workload, cores: float) -> FloatArray:
    """The jobs of the relaxed problem, at which paths start."""
    return np.floor([one.jobs for one in bound(workload, cores).classes])


def blind_wham(workload: Workload, cores: float) -> tuple[Callable[..., None], FloatArray]:
    """The rule on class counts and its table, which ends with the order in which classes are served."""
    speedups, costs = workload.speedups, workload.holding_costs / workload.holding_costs.max()
    least = np.array([float(s.most_efficient) for s in speedups])
    speeds = np.array([float(s(k)) for s, k in zip(speedups, least, strict=True)])
    order = np.argsort(-costs / workload.mean_sizes * speeds / least, kind="stable")
    closed = quadratic_table(speedups, costs)
    if closed is not None:
        return blind_quadratic_rule, np.concatenate([closed, order])
    return blind_market_rule, np.concatenate([market_table(speedups, costs, cores), order])


def blind_quadratic_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Size-blind WHAM for power and Amdahl classes."""
    if _needed(counts, table) < cores:
        quadratic_rule(counts, cores, table, out)
    else:
        _serve_in_order(counts, cores, table, out)


def blind_market_rule(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Size-blind WHAM for any mix of speedups."""
    if _needed(counts, table) < cores:
        wham_rule(counts, cores, table, out)
    else:
        _serve_in_order(counts, cores, table, out)


def _needed(counts: FloatArray, table: FloatArray) -> float:
    """Cores for the least width of every job."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * most_efficient(table, i)
    return total


def _serve_in_order(counts: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    m = len(counts)
    left = cores
    for position in range(len(table) - m, len(table)):
        i = int(table[position])
        out[i] = 0.0
        if counts[i] > 0.0:
            out[i] = min(most_efficient(table, i), left / counts[i])
            left -= counts[i] * out[i]
