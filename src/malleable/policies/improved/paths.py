"""Paths of class counts under a policy: its cost batch by batch, and the fit of its value.

Uniform numbers come from one seed, so that paths of two policies see the same.

The first path is that of WHAM on class counts alone, at any number of jobs. While the least widths of all
jobs fit, WHAM looks at counts only. Beyond, it serves by c/x; blind to sizes that is c_i/E[X_i], class after
class, and the last class that is served shares its cores in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.kernels.count_kernel import Visits, follow
from malleable.engine.speedup_table import most_efficient
from malleable.policies.improved.count_value import Value, value_table
from malleable.policies.improved.count_value_fit import Chain, Fit, bellman, fitted
from malleable.policies.improved.improved_rule import improved_rule
from malleable.policies.rules.class_rules import market_table, quadratic_rule, quadratic_table, wham_rule
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload

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
