"""Laws with given moments, in closed form.

With mean m and squared coefficient of variation C:

- Erlang: round(1/C) stages of rate stages/m; C is met as nearly as whole stages allow.
- Hyperexponential (C ≥ 1): two phases. The three moments are met where some law of this form has them, where
  m·m₃ > 3/2·m₂² (Whitt, *Approximating a point process by a renewal process, I*, 1982); otherwise the first
  two, with balanced means.
- Coxian: for C ≥ 1/2 two stages of rates 2/m and 1/(mC), going on with probability 1/(2C); below that
  k = ⌈1/C⌉ stages of one rate that the job leaves after the first with probability
  (2kC + k − 2 − √(k² + 4 − 4kC))/(2(C+1)(k−1)) (Marie 1980).
"""

from __future__ import annotations

from math import ceil, fsum, sqrt
from typing import TYPE_CHECKING

import numpy as np

from malleable.distributions.coxian import Coxian
from malleable.distributions.erlang import Erlang
from malleable.distributions.exponential import Exponential
from malleable.distributions.hyperexponential import Hyperexponential
from malleable.errors import MeasurementError
from malleable.fitting.curves import rounded
from malleable.fitting.erlang_mixtures import Mixture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution

EQUAL = 1e-6
"""Two rates are one, relatively."""
LEAST_SCV = 1e-3
"""Below this the sizes are nearly all equal, and stages would be thousands."""

Found = tuple["Distribution", Mixture]


def exponential(mean: float) -> Found:
    """The exponential law with that mean."""
    return Exponential(rate=rounded(1.0 / mean)), _mixture([1.0], [1.0], [1.0 / mean])


def erlang(mean: float, scv: float) -> Found:
    """The Erlang law with that mean, and nearly that variation."""
    stages = max(1, round(1.0 / max(scv, LEAST_SCV)))
    return Erlang(stages, rounded(stages / mean)), _mixture([1.0], [stages], [stages / mean])


def hyperexponential(mean: float, scv: float, third: float) -> Found:
    """Two exponential phases with that mean and variation, and that third moment if it can be."""
    if scv <= 1.0:
        problem = f"the squared coefficient of variation is {scv:.4g}, below that of any hyperexponential law"
        raise MeasurementError(problem, "use erlang, coxian or phase_type")
    rates, share = _three_moments(mean, scv, third) or _balanced(mean, scv)
    weights = (share, 1.0 - share)
    law = Hyperexponential(rounded_shares(weights), tuple(map(rounded, rates)))
    return law, _mixture(weights, (1.0, 1.0), rates)


def _balanced(mean: float, scv: float) -> tuple[tuple[float, float], float]:
    """Each phase contributes half of the mean."""
    share = 0.5 * (1.0 + sqrt((scv - 1.0) / (scv + 1.0)))
    return (2.0 * share / mean, 2.0 * (1.0 - share) / mean), share


def _three_moments(mean: float, scv: float, third: float) -> tuple[tuple[float, float], float] | None:
    """The means x > y of the phases solve x² − ax + b = 0, from the reduced moments m, m₂/2 and m₃/6."""
    r1, r2, r3 = mean, mean**2 * (scv + 1.0) / 2.0, third / 6.0
    spread = r2 - r1**2
    if not r1 * r3 > r2**2 * (1.0 + EQUAL):
        return None
    a, b = (r3 - r1 * r2) / spread, (r1 * r3 - r2**2) / spread
    root = sqrt(max(a * a - 4.0 * b, 0.0))
    x, y = (a + root) / 2.0, (a - root) / 2.0
    share = (r1 - y) / (x - y) if x > y else 0.0
    return ((1.0 / x, 1.0 / y), share) if y > 0.0 and 0.0 < share < 1.0 else None


def coxian(mean: float, scv: float) -> Found:
    """Stages in a row with that mean and variation."""
    if scv >= 0.5:
        first, second, onward = 2.0 / mean, 1.0 / (mean * scv), 0.5 / scv
        law = Coxian((rounded(first), rounded(second)), (rounded(onward),))
        if abs(first - second) <= EQUAL * first:
            return law, _mixture([1.0 - onward, onward], [1.0, 2.0], [first, first])
        weight = onward * first / (first - second)
        return law, _mixture([1.0 - weight, weight], [1.0, 1.0], [first, second])
    C = max(scv, LEAST_SCV)
    k = ceil(1.0 / C - EQUAL)
    leave = (2 * k * C + k - 2 - sqrt(max(k * k + 4 - 4 * k * C, 0.0))) / (2 * (C + 1) * (k - 1))
    leave = min(max(leave, 0.0), 1.0)
    rate = (k - leave * (k - 1)) / mean
    law = Coxian((rounded(rate),) * k, (rounded(1.0 - leave), *(1.0,) * (k - 2)))
    return law, _mixture([leave, 1.0 - leave], [1.0, k], [rate, rate])


def rounded_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Probabilities with few digits that still sum to 1: the largest takes up the rest."""
    made = [rounded(share) for share in shares]
    largest = made.index(max(made))
    made[largest] = round(1.0 - (fsum(made) - made[largest]), 12)
    return tuple(made)


def _mixture(weights: object, stages: object, rates: object) -> Mixture:
    return Mixture(*(np.array(part, dtype=float) for part in (weights, stages, rates)))
