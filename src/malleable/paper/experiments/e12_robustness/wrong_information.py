"""WHAM that is told wrong things: speedups with wrong parameters, or no job sizes. As policies and as cells.

With wrong speedups WHAM shares out the cores by what it believes, and jobs run as they really do. In the
limit of many cores class i runs on k_i = argmin (c_i + l·k)/ŝ_i(k) with the believed ŝ, at the price where
the true core-time is used up, Σ load_i k_i/s_i(k_i) = n.

Without sizes only the order in overload changes: instead of c/x the index is c/E[X − a | X > a], a being the
work done so far. For a mixture of exponentials, with probabilities p_u and rates μ_u,

    E[X − a | X > a] = Σ_u p_u e^{−μ_u a}/μ_u / Σ_u p_u e^{−μ_u a}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from malleable.contracts import ANY, Need, Policy
from malleable.engine.rule_interface import CLASS, REMAINING, SIZE, WEIGHT, Program
from malleable.errors import UnsupportedError
from malleable.model import paper_workload
from malleable.paper.simulation_cells import Inline, described, plain
from malleable.policies.base.job_rule import JobRule
from malleable.policies.rules.class_rules import WIDENING, quadratic_rule, quadratic_table
from malleable.policies.rules.ordering import ascending
from malleable.policies.wham import Wham
from malleable.results import Comparison
from malleable.simulation import simulate
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.contracts import FloatArray, Speedup
    from malleable.model import Workload

MOST = 0.999
"""Exponents and sequential parts are believed to be less than this."""


@dataclass(frozen=True)
class Misled(Policy):
    """WHAM with the parameter of each class's speedup believed to be `factors` times what it is."""

    factors: tuple[float, ...]

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        return Wham().program(believed_workload(workload, self.factors), cores, need)


def believed_workload(workload: Workload, factors: Sequence[float]) -> Workload:
    """The workload with every speedup's parameter multiplied by its factor."""
    pairs = zip(workload.classes, factors, strict=True)
    return replace(
        workload, classes=tuple(replace(c, speedup=_believed(c.speedup, factor)) for c, factor in pairs)
    )


def _believed(speedup: Speedup, factor: float) -> Speedup:
    if isinstance(speedup, Power):
        return Power(min(speedup.exponent * factor, MOST))
    if isinstance(speedup, Amdahl):
        return Amdahl(min(speedup.sequential * factor, MOST))
    raise UnsupportedError(f"{speedup.kind} has no single parameter to be wrong about", "use power or amdahl")


def misled_limit(workload: Workload, cores: float, factors: Sequence[float]) -> float:
    """The cost of `Misled` in the limit of many cores."""
    believed = believed_workload(workload, factors).speedups

    def speeds(price: float) -> tuple[FloatArray, FloatArray]:
        widths = [s.demand(price, c) for s, c in zip(believed, workload.holding_costs, strict=True)]
        run = [s(k) for s, k in zip(workload.speedups, widths, strict=True)]
        return np.array(widths, dtype=float), np.array(run, dtype=float)

    def excess(logarithm: float) -> float:
        k, s = speeds(math.exp(logarithm))
        return float(workload.loads @ (k / s)) / cores - 1.0

    _, s = speeds(math.exp(brentq(excess, -30.0, 10.0, xtol=1e-14)))
    return float(workload.holding_costs @ (workload.loads / s)) / workload.total_rate


def misled_limits(cores: int, load: float, factors: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Limits by name of the combination of factors, and the lower bound as `bound`."""
    workload = paper_workload(cores, load)
    found = {name: misled_limit(workload, cores, each) for name, each in factors.items()}
    return {"bound": bound(workload, cores).bound, **found}


def blind_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Widths from the class counts, as WHAM; one core each by expected remaining size in overload."""
    size, classes, own = jobs.shape[0], int(table[0]), int(table[1])
    if size < cores:
        counts, widths = np.zeros(classes), np.zeros(classes)
        for j in range(size):
            counts[int(jobs[j, CLASS])] += 1.0
        quadratic_rule(counts, cores, table, widths)
        for j in range(size):
            out[j] = widths[int(jobs[j, CLASS])]
        return
    keys, laws = np.empty(size), own + len(WIDENING) * classes
    for j in range(size):
        out[j] = 0.0
        done = jobs[j, SIZE] - jobs[j, REMAINING]
        keys[j] = -jobs[j, WEIGHT] / expected_remaining(table, laws, int(jobs[j, CLASS]), done)
    order = ascending(keys)
    for position in range(min(size, int(cores))):
        out[order[position]] = 1.0


def expected_remaining(table: FloatArray, start: int, i: int, done: float) -> float:
    """E[X − a | X > a] of class i; the laws stand in the table from `start` on."""
    phases = int(table[start])
    row = start + 1 + 2 * phases * i
    slowest = math.inf
    for u in range(phases):
        if table[row + u] > 0.0:
            slowest = min(slowest, table[row + phases + u])
    above = below = 0.0
    for u in range(phases):
        rate = table[row + phases + u]
        # Relative to the slowest phase, so that nothing underflows.
        weight = table[row + u] * math.exp(-(rate - slowest) * done) if table[row + u] > 0.0 else 0.0
        above += weight / rate
        below += weight
    return above / below


@dataclass(frozen=True)
class Blind(JobRule):
    """WHAM without sizes: in overload the largest c/E[remaining size | work done so far] go first."""

    rule = staticmethod(blind_rule)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - n comes with the call
        table = quadratic_table(workload.speedups, workload.holding_costs)
        if table is None:
            raise UnsupportedError("Blind needs power and Amdahl speedups", "use the paper's workload")
        laws = [_mixture(c.size.phase_type(), c.name) for c in workload.classes]
        phases = max(len(p) for p, _ in laws)
        rows = np.zeros((len(laws), 2, phases))
        rows[:, 1] = 1.0
        for row, (p, rates) in zip(rows, laws, strict=True):
            row[0, : len(p)], row[1, : len(p)] = p, rates
        return np.concatenate([table, [float(phases)], rows.ravel()])


def _mixture(law: tuple[FloatArray, FloatArray] | None, name: str) -> tuple[FloatArray, FloatArray]:
    if law is None or not np.array_equal(law[1], np.diag(np.diag(law[1]))):
        raise UnsupportedError(f"class {name!r}: sizes are no mixture of exponentials", "use one")
    return law[0], -np.diag(law[1])


def told(policy: Mapping[str, Any]) -> Policy:
    """A policy of this module from a cell's arguments: {"factors": …}, or {} for one without sizes."""
    return Misled(tuple(policy["factors"])) if "factors" in policy else Blind()


def misled_runs(
    policies: Mapping[str, Mapping[str, Any]],
    cores: int,
    load: float,
    *,
    workload: str | Mapping[str, Any] = "paper",
    jobs: int,
    seed: int,
) -> dict[str, Any]:
    """WHAM and misled policies on the same jobs, as `compared` has it; the policies by name."""
    made = described(workload, cores, load)
    runs = [("wham", Policy.of("wham")), *((name, told(policy)) for name, policy in policies.items())]
    results = [
        replace(simulate(made, cores, policy, jobs=jobs, seed=seed, executor=Inline()), policy=name)
        for name, policy in runs
    ]
    return plain(Comparison.of(results))
