"""Paths of class counts under a policy: its cost batch by batch, and the fit of its value.

Uniform numbers come from one seed, so that paths of two policies see the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.kernels.count_kernel import Visits, follow
from malleable.policies.improvement.quadratic_fit import Chain, Fit, bellman, fitted
from malleable.policies.rules.blind_wham import blind_wham
from malleable.policies.rules.improved_rule import improved_rule
from malleable.policies.rules.value_table import Value, value_table
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
