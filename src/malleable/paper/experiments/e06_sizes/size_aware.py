"""heSRPT with its shares levelled at one core, for one class with s(k) = √k, and its limit for many cores.

heSRPT gives a job the more cores the smaller it is. With p = ½ and m jobs of equal weight the i-th largest is
due (2i − 1)/m² of the cores, and the largest are due less than one. They are given one core, and the shares
of the others are scaled down together: k_i = max(1, κ(2i − 1)).

The limit. A fraction u of the jobs is larger than a job of remaining size x, and it has k(u) = max(1, a·u)
cores. N jobs use all cores, N ∫ k(u) du = n. Jobs pass x at rate λ P(X > x), and there are −N u'(x) dx of
them near x, which move at speed √k(u): −N u'(x) √k(u) = λ P(X > x). Integrated over x,

    N ∫ √k(u) du = λ E[X] = ρn,      so     a/2 + 1/(2a) = n/N,      (2/3)√a + 1/(3a) = ρn/N,

whatever the law of the sizes. EQUI, and WHAM with one class, have N = ρ²n. Without the level the ratio of
both is exactly 9/8.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from scipy.optimize import brentq

from malleable.model import Workload, paper_workload
from malleable.paper.simulation_cells import Inline, plain
from malleable.policies.rules.ordering import by_remaining, one_core_each
from malleable.policies.rules.tolerances import DUST
from malleable.simulation import compare
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def levelled(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:  # noqa: ARG001
    """A job rule, compiled by the engine."""
    size = jobs.shape[0]
    out[:] = 0.0
    if size >= cores - DUST:
        one_core_each(jobs, cores, out)
        return
    order = by_remaining(jobs)
    held = 0
    while held < size and (cores - held) * (2 * held + 1) < size * size - held * held:
        held += 1
    for position in range(size):
        larger = size - 1 - position
        if larger < held:
            out[order[position]] = 1.0
        else:
            out[order[position]] = (cores - held) * (2 * larger + 1) / (size * size - held * held)


def limit_ratio(load: float) -> float:
    """Cost of the levelled rule over that of WHAM in the limit of many cores, one class with s(k) = √k."""

    def excess(a: float) -> float:
        return load * (a / 2.0 + 0.5 / a) - (2.0 / 3.0 * sqrt(a) + 1.0 / (3.0 * a))

    # With a = 1 every job has one core and the left side is load; it passes the right side once beyond.
    a = float(brentq(excess, 1.0, 4.0 / load**2))
    return 2.0 / (a + 1.0 / a) / load**2


def alone(policy: str, cores: int, load: float, jobs: int, seed: int) -> dict[str, Any]:
    """Class 2 of the paper alone, √k: a rule by size against WHAM, which is EQUI then, on the same jobs."""
    workload = Workload("one class", (paper_workload().classes[1],)).at(cores, load)
    rule: Any = levelled if policy == "levelled" else policy
    found = compare(workload, cores, ["wham", rule], jobs=jobs, seed=seed, executor=Inline())
    return {**plain(found), "limit": bound(workload, cores).bound, "ratio": limit_ratio(load)}
