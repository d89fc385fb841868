"""Is a class rule monotone: do more jobs of any class leave every job with as many cores, or fewer?

A market is, whatever its demands: with more jobs the price is higher, and every demand falls in the price.
Of WHAM, GREEDY, GREEDY* and EQUI it is therefore known. A rule that is asked itself can be caught at counts
where it is not; that none was found at many random counts proves nothing, but is as much as asking can say.

Why it matters stands in `docs/explanation/attractor.md`: the fixed point of a monotone rule attracts all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.rule_interface import COUNTS, POOLS, SHARE
from malleable.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray, Policy
    from malleable.model import Workload

ASKED = 400
"""Pairs of counts at which a rule is asked."""
CROWD = 1.4
"""The most jobs of a pair, relative to the cores."""
ROUNDING = 1e-7
"""The relative rise of a width that is none."""


class Monotone(NamedTuple):
    """What is known of a rule."""

    holds: bool
    by_construction: bool
    """Whether it is a market, so that no counts have to be tried."""
    asked: int
    worst: float
    """The largest relative rise of a width when jobs were added."""
    example: str
    """Counts at which a width rises."""


def monotone(policy: Policy, workload: Workload, cores: float) -> Monotone | None:
    """What is known of a policy's rule; None if it is no rule on class counts."""
    acting = policy.in_effect(workload, cores)
    try:
        market = acting.by_price and says_its_demand(acting, workload)
    except UnsupportedError:
        return None
    if market:
        return Monotone(holds=True, by_construction=True, asked=0, worst=0.0, example="")
    program = acting.program(workload, cores)
    if program is None or program.sees != COUNTS or program.discipline == POOLS:
        return None
    rule, discipline, table = program.rule, program.discipline, program.table.copy()

    def widths(jobs: FloatArray) -> FloatArray:
        if jobs.sum() >= cores and discipline != SHARE:
            return np.full(len(jobs), cores / float(jobs.sum()))
        out = np.zeros(len(jobs))
        rule(jobs.copy(), float(cores), table, out)
        return out

    return asked(widths, len(workload.classes), float(cores))


def says_its_demand(policy: Policy, workload: Workload) -> bool:
    """Whether there are buyers of its own rule: a user's class may inherit the ones and not the other."""
    if policy.buyers(workload) is None:
        return False
    rule, demand = (
        next(one for one in type(policy).__mro__ if name in vars(one)) for name in ("program", "buyers")
    )
    return rule.__module__.startswith("malleable.") or issubclass(demand, rule)


def asked(
    widths: Callable[[FloatArray], FloatArray], classes: int, cores: float, pairs: int = ASKED, seed: int = 0
) -> Monotone:
    """Add jobs of one class, or of several, to random counts, and see whether any width rises."""
    rng = np.random.default_rng(seed)
    worst, example = 0.0, ""
    for pair in range(pairs):
        few = rng.dirichlet(np.full(classes, 0.7)) * cores * rng.uniform(0.02, CROWD)
        more = few + few.sum() * rng.exponential(0.2, classes) * (rng.random(classes) < 1.0 / (1 + pair % 3))
        before, after = widths(few), widths(more)
        there = few > 1e-6 * cores
        rises = float((after[there] / np.maximum(before[there], 1e-12) - 1.0).max(initial=0.0))
        if rises > worst:
            worst, example = rises, f"{_counts(few)} to {_counts(more)}"
    return Monotone(worst <= ROUNDING, False, pairs, worst, example if worst > ROUNDING else "")


def _counts(jobs: FloatArray) -> str:
    return "(" + ", ".join(f"{count:.3g}" for count in jobs) + ")"
