"""The refined mean field: the cost at a finite number of cores, without simulation.

Around the fixed point z* of the fluid equation ż = F(z) the counts fluctuate with covariance W, and because F
is curved their mean shifts by V (Gast and Van Houdt, *A refined mean field approximation*, 2017):

    A W + W Aᵀ + Q = 0,      V = −A⁻¹ [½ B:W],      E[Z] ≈ z* + V,      cost(n) ≈ V* + (1/λ) Σ c_i V_iu

with A = DF(z*), B = D²F(z*). The noise Q collects, per unit of time,

    arrivals      λ_i (diag p_i + (c_a² − 1) p_i p_iᵀ)          c_a² = 1 when they are Poisson
    phase moves   z_iv Q_i(v,u) h_i (e_u − e_v)(e_u − e_v)ᵀ
    exits         z_iv q_iv h_i e_v e_vᵀ.

W grows with n and V does not, so at fixed load the correction to the cost is coefficient/n. It presumes that
F is smooth and the equation valid as far as the counts fluctuate: it fails where a class reaches one of its
limits or corners (a *kink*), and where jobs outnumber cores too often. The result says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import ndtr

from malleable.errors import UnsupportedError
from malleable.theory.count_fluid import CountFluid
from malleable.theory.fluid import TIE, price_gradients

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.theory.fluid import FixedPoint, Fluid

TINY = 1e-300
RARE = 0.01
"""Probability of overload above which the correction is not to be trusted."""
LARGE = 0.3
"""Share of the cost beyond which a first correction leaves too much to the next. What it leaves grows with
its square: 1.4 % for a correction of 28 %, 22 % for one of 128 % (paper workload, exact chains)."""


@dataclass(frozen=True)
class Refined:
    """The correction to the mean field and whether it can be trusted."""

    coefficient: float | None
    """cost(n) ≈ fixed-point cost + coefficient/n at the same load; None where there is none."""
    cost: float | None
    """The corrected cost at the given number of cores."""
    applies: bool
    reason: str
    """Why it does not apply; empty if it does."""
    overload: float | None
    """Probability that jobs need more cores than there are, by the normal approximation."""

    def to_dict(self) -> dict[str, Any]:
        """The entry `refined` of `malleable meanfield`."""
        return asdict(self)


class Linear(NamedTuple):
    """The linearised equation A = DF(z*), in units of z*, where it is U T Uᵀ with T nearly triangular.

    In these units classes of very different numbers do not drown each other in rounding. The Schur form is
    what takes time; eigenvalues and covariance are read off the same one.
    """

    matrix: FloatArray
    unit: FloatArray
    T: FloatArray
    U: FloatArray

    @property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Of A: the diagonal of T, and a conjugate pair for each block of two rows."""
        values = np.diag(self.T).astype(complex)
        below, above = np.diag(self.T, -1), np.diag(self.T, 1)
        pairs = np.flatnonzero(below != 0.0)
        with np.errstate(over="ignore"):
            square = np.abs(below[pairs] * above[pairs])
        apart = np.sqrt(np.abs(below[pairs])) * np.sqrt(np.abs(above[pairs]))
        turns = 1j * np.where(np.isfinite(square), np.sqrt(square), apart)
        values[pairs] += turns
        values[pairs + 1] -= turns
        return values


def linearise(fluid: Fluid, point: FixedPoint) -> Linear:
    """The linearised equation at a fixed point."""
    unit = np.where(point.state > 0.0, point.state, 1.0)
    with np.errstate(all="ignore"):
        A = fluid.jacobian(point.state, point.market)
        scaled = A * unit / unit[:, None]
    if not (np.isfinite(scaled).all() and point.cost > 0.0):
        raise UnsupportedError(
            "the cost at the fixed point, or the equation linearised there, is beyond the range of numbers",
            "choose rates, sizes and costs that are closer to each other",
        )
    T, U = linalg.schur(scaled, output="real")
    return Linear(A, unit, T, U)


def refine(fluid: Fluid, point: FixedPoint, linear: Linear | None = None) -> Refined:
    """The 1/n correction at a fixed point of the fluid equation."""
    linear = linear or linearise(fluid, point)
    reason = _no_answer(fluid, linear) or fluid.no_expansion(point)
    if reason:
        return Refined(None, None, applies=False, reason=reason, overload=None)
    with np.errstate(all="ignore"):
        W, shift = fluctuations(fluid, point, linear)
    if not (np.isfinite(W).all() and np.isfinite(shift).all()):
        reason = "the covariance of the counts is beyond the range of numbers"
        return Refined(None, None, applies=False, reason=reason, overload=None)
    costs = fluid.workload.holding_costs
    extra = float(costs @ fluid.by_class(shift)) / fluid.workload.total_rate
    overload = _overload(fluid, point.state + shift, W)
    often = f"jobs outnumber cores with probability {overload:.2g}"
    large = f"the correction is {extra / point.cost:.0%} of the cost: too few jobs for an expansion in 1/n"
    reason = often if overload > RARE else _kink(fluid, point, W)
    reason = reason or (large if abs(extra) > LARGE * point.cost else "")
    return Refined(extra * fluid.cores, point.cost + extra, not reason, reason, overload)


def fluctuations(
    fluid: Fluid, point: FixedPoint, linear: Linear | None = None
) -> tuple[FloatArray, FloatArray]:
    """Covariance W of the counts by phase, and the shift V of their mean."""
    A, unit, T, U = linear or linearise(fluid, point)
    # Twice by one unit: the square of a very small number may be none.
    scatter = noise(fluid, point) / unit / unit[:, None]
    # A W + W Aᵀ = −Q becomes T Y + Y Tᵀ = −Uᵀ Q U, solved by substitution (Bartels and Stewart, 1972).
    Y, scale, _ = linalg.lapack.dtrsyl(T, T, -(U.T @ scatter @ U), tranb="T")
    W = U @ (scale * Y) @ U.T
    W = 0.5 * (W + W.T) * unit * unit[:, None]
    V = -0.5 * np.linalg.solve(A, fluid.curvature(point.state, W, point.market))
    return W, np.asarray(V, dtype=float)


def noise(fluid: Fluid, point: FixedPoint) -> FloatArray:
    """Q: how much the counts scatter per unit of time."""
    own = np.equal.outer(fluid.owner, fluid.owner)
    rates = fluid.workload.rates[fluid.owner]
    burstiness = np.array([c.arrivals.interval.scv for c in fluid.workload.classes])[fluid.owner] - 1.0
    clumped = own * np.outer(fluid.arrivals * burstiness / rates, fluid.arrivals)
    speed = fluid.response(point.market).speed[0][fluid.owner]
    flow = (point.state * speed)[:, None] * fluid.generator
    leaving = -np.diag(flow)
    moving = flow + np.diag(leaving)
    Q = np.diag(fluid.arrivals + leaving + moving.sum(axis=0)) + clumped - moving - moving.T
    return np.asarray(Q)


def _no_answer(fluid: Fluid, linear: Linear) -> str:
    if linear.eigenvalues.real.max() >= 0.0:
        return "the fixed point is not stable"
    for job_class in fluid.workload.classes:
        if not np.isfinite(job_class.arrivals.interval.scv):
            return f"class {job_class.name!r}: inter-arrival times have no finite variance"
    return ""


def _overload(fluid: Fluid, mean: FloatArray, W: FloatArray) -> float:
    """P(N ≥ n), with N counted in least widths, if the counts were normal."""
    need = fluid.floor[fluid.owner]
    spread = _spread(need, W)
    return float(ndtr((float(need @ mean) - fluid.cores) / max(spread, TINY)))


def _spread(direction: FloatArray, W: FloatArray) -> float:
    """The standard deviation in a direction; a variance below 0 is rounding."""
    return float(np.sqrt(max(float(direction @ W @ direction), 0.0)))


def _kink(fluid: Fluid, point: FixedPoint, W: FloatArray) -> str:
    """Whether a class meets a limit or a corner within one standard deviation of the price."""
    C = fluid.by_class(fluid.by_class(W).T)
    if isinstance(fluid, CountFluid):
        abrupt = fluid.kinks(point, C)
        return f"counts of {_names(fluid, abrupt)} cross a kink or a jump of the rule" if abrupt.any() else ""
    cores, _, tied = fluid.response(point.market)
    if point.market.price == 0.0 and not tied:
        spread = _spread(cores[0], C)
        short = float(point.jobs @ cores[0]) + spread > fluid.cores
        return "the cores are at times too few for what all jobs can use" if short else ""
    gradient, _ = price_gradients(point.jobs, cores)
    spread = _spread(gradient, C)
    if tied:
        if spread < point.market.share < 1.0 - spread:
            return ""
        return f"{_names(fluid, cores[1] > TIE * cores[0])} within one standard deviation of a corner"
    # Few jobs fluctuate by many times their number; a thousandfold price is far enough to look.
    ratio = float(np.exp(min(spread / point.market.price, np.log(1e3))))
    here, cheap, dear = (_regime(fluid, point.market.price * x) for x in (1.0, 1.0 / ratio, ratio))
    changes = (here != cheap).any(axis=0) | (here != dear).any(axis=0)
    if not changes.any():
        return ""
    return f"{_names(fluid, changes)} within one standard deviation of a kink in demand"


def _regime(fluid: Fluid, price: float) -> FloatArray:
    """What stays the same in a class while its speed is a smooth function of the price."""
    g, slope, _ = fluid.buyers.derivatives(price)
    _, s1, s2, _ = fluid.buyers.speedups.derivatives(np.maximum(g, 1.0))
    fixed, straight = slope == 0.0, (s2 == 0.0) | (g < 1.0)
    piece = np.where(straight, np.where(g < 1.0, 1.0, s1), 0.0)
    out = price > fluid.buyers.entry
    return np.array([fixed, np.where(fixed, g, 0.0), straight, piece, out], dtype=float)


def _names(fluid: Fluid, chosen: NDArray[np.bool_]) -> str:
    names = [repr(name) for name, one in zip(fluid.workload.class_names, chosen, strict=True) if one]
    return f"{'class' if len(names) == 1 else 'classes'} {', '.join(names)}"
