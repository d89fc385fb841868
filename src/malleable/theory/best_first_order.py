"""The best possible 1/n term: what the cost of the optimal policy adds to V*, and how near WHAM comes to it.

Jobs of exponential size as a fluid with a noise of the order of its root: steer ẋ_i = λ_i − μ_i x_i s_i(k_i)
at cost Σ c_i x_i under Σ x_i k_i ≤ n. Let p_i be what one more class-i job costs from now on. The Hamiltonian

    H(x, p) = Σ c_i x_i + Σ λ_i p_i − max_k Σ p_i μ_i x_i s_i(k_i)

is stationary at WHAM's fixed point x*, where p_i* = (c_i + l* k_i*)/(μ_i s_i(k_i*)): holding cost plus rent
for a unit of work, over the rate at which jobs leave. With w = μp, D_i = w_i s_i″(k_i) (1/D_i = 0 where class
i stays on its least width), S = Σ x_j/D_j, a_i = μ_i s_i′ and b_i = x_i a_i/D_i, its second derivatives are

    H_xx = −k kᵀ/S,      H_px = −diag(μ s) + b kᵀ/S,      H_pp = −b bᵀ/S + diag(x a²/D).

Near x* the value is quadratic with the matrix P of the Hamilton–Jacobi equation to second order, a Riccati
equation of which the stabilising solution counts; the noise Σ = diag(λ_i (1 + c_a²)) then costs ½ tr(P Σ):

    H_xx + H_xp P + P H_px + P H_pp P = 0,      cost rate of the optimum = λ V* + ½ tr(P Σ) + o(1).

WHAM's own term has the same form, with the matrix of a fixed rule with drift F and A = DF(x*):

    Aᵀ P_W + P_W A + Σ_i p_i* D²F_i = 0,        cost rate of WHAM = λ V* + ½ tr(P_W Σ) + o(1).

The second is `refined_mean_field` read backwards, so the two modules check each other. Per job the terms are
coefficient/n. Both presume what the refined mean field does: no kink near, and cores that rarely run out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg

from malleable.contracts import FloatArray
from malleable.distributions.exponential import Exponential
from malleable.theory.market import WhittleBuyers

if TYPE_CHECKING:
    from malleable.theory.fluid import FixedPoint, Fluid
    from malleable.theory.refined_mean_field import Linear, Refined

NONE = np.zeros((0, 0))


@dataclass(frozen=True)
class FirstOrder:
    """The 1/n coefficients of the optimal policy and of WHAM, at the same load."""

    best: float | None
    """No policy that is blind to sizes has a cost below V* + best/n + o(1/n); None where it is not known."""
    wham: float | None
    """WHAM's own, from the same expansion."""
    excess: float | None
    """How far WHAM's coefficient lies above the best, as a share of it."""
    applies: bool
    reason: str
    """Why it does not apply; empty if it does."""
    riccati: FloatArray = field(default_factory=lambda: NONE, repr=False, compare=False)
    """P: the second derivatives of the optimal value at the fixed point, classes in rows and columns."""

    def to_dict(self) -> dict[str, Any]:
        """The entry `first_order` of `malleable meanfield`."""
        document = asdict(self)
        del document["riccati"]
        return document


class Hamiltonian(NamedTuple):
    """Second derivatives of H at the fixed point."""

    xx: FloatArray
    px: FloatArray
    pp: FloatArray


def best_first_order(fluid: Fluid, point: FixedPoint, linear: Linear, refined: Refined) -> FirstOrder:
    """Both coefficients at the fixed point of WHAM's fluid equation, with the verdict of its correction."""
    reason = _no_answer(fluid, point, refined)
    if reason:
        return FirstOrder(None, None, None, applies=False, reason=reason)
    with np.errstate(all="ignore"):
        try:
            P = riccati(hamiltonian(fluid, point), linear.unit)
        except (linalg.LinAlgError, ValueError):
            reason = "the Riccati equation of the optimal policy has no stabilising solution in numbers"
            return FirstOrder(None, None, None, applies=False, reason=reason)
        own = wham_matrix(fluid, point, linear)
    noise = fluid.workload.rates * _noise(fluid)
    per_core = fluid.cores / fluid.workload.total_rate
    best, wham = (0.5 * float(noise @ np.diag(matrix)) * per_core for matrix in (P, own))
    if not 0.0 < best < np.inf:
        return FirstOrder(None, None, None, applies=False, reason="its terms are beyond the range of numbers")
    return FirstOrder(best, wham, wham / best - 1.0, refined.applies, refined.reason, P)


def _no_answer(fluid: Fluid, point: FixedPoint, refined: Refined) -> str:
    """Why there is nothing to compute; empty if there is."""
    if not fluid.by_price or not isinstance(fluid.buyers, WhittleBuyers) or fluid.buyers.integer:
        return "it belongs to WHAM's fixed point, and this policy has another"
    for one in fluid.workload.classes:
        if type(one.size) is not Exponential:
            return f"known only for exponential sizes; {one.name} is {one.size.kind}"
    cores, _, tied = fluid.response(point.market)
    if tied or point.price == 0.0:
        return "the price does not move with the counts (a table, or cores for all that helps)"
    if not (cores[1] < 0.0).any():
        return "every class stays on its least width, so there is nothing to choose"
    return refined.reason if refined.coefficient is None else ""


def _noise(fluid: Fluid) -> FloatArray:
    """How much the counts of a class scatter, per arrival: 1 + c_a² (as many leave as come)."""
    return 1.0 + np.array([c.arrivals.interval.scv for c in fluid.workload.classes])


def job_values(fluid: Fluid, point: FixedPoint) -> FloatArray:
    """p*: what one more job of each class costs from the fixed point on."""
    workload = fluid.workload
    speeds = np.asarray(fluid.buyers.speedups(point.widths))
    return (workload.holding_costs + point.price * point.widths) * workload.mean_sizes / speeds


def hamiltonian(fluid: Fluid, point: FixedPoint) -> Hamiltonian:
    """The second derivatives of H at the fixed point, where classes on their least width stay there."""
    k, x, rates = point.widths, point.jobs, 1.0 / fluid.workload.mean_sizes
    s, s1, s2, _ = fluid.buyers.speedups.derivatives(k)
    moves = fluid.response(point.market).cores[1] < 0.0
    bend = rates * job_values(fluid, point) * s2
    inverse = np.where(moves, 1.0 / np.where(moves, bend, 1.0), 0.0)
    total, a = float(x @ inverse), rates * s1
    b = x * a * inverse
    return Hamiltonian(
        xx=-np.outer(k, k) / total,
        px=-np.diag(rates * s) + np.outer(b, k) / total,
        pp=-np.outer(b, b) / total + np.diag(x * a * a * inverse),
    )


def riccati(H: Hamiltonian, unit: FloatArray) -> FloatArray:
    """The stabilising P, found in multiples of `unit` (jobs of each class) so that classes are comparable."""
    xx, px, pp = H.xx * unit * unit[:, None], H.px * unit / unit[:, None], H.pp / unit / unit[:, None]
    # −H_pp has no negative eigenvalue (Cauchy and Schwarz); what rounding makes of 0 is dropped.
    values, vectors = np.linalg.eigh(-0.5 * (pp + pp.T))
    steering = vectors * np.sqrt(np.maximum(values, 0.0))
    P = linalg.solve_continuous_are(px, steering, 0.5 * (xx + xx.T), np.eye(len(unit)))
    return np.asarray(0.5 * (P + P.T) / unit / unit[:, None])


def wham_matrix(fluid: Fluid, point: FixedPoint, linear: Linear) -> FloatArray:
    """P_W: what deviations from the fixed point cost under WHAM, to second order."""
    unit, m = linear.unit, len(point.state)
    A = linear.matrix * unit / unit[:, None]
    values, bend = job_values(fluid, point), np.zeros((m, m))
    for i in range(m):
        for j in range(i + 1):
            pair = np.zeros((m, m))
            pair[i, j] = pair[j, i] = unit[i] * unit[j]
            once = 0.5 * float(values @ fluid.curvature(point.state, pair, point.market))
            bend[i, j] = bend[j, i] = once * (2.0 if i == j else 1.0)
    P = linalg.solve_continuous_lyapunov(A.T, -bend)
    return np.asarray(0.5 * (P + P.T) / unit / unit[:, None])
