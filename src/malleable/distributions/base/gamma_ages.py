"""What remains of a gamma variable at an age: shared by the gamma, the Erlang and the Weibull laws.

For shape k and rate 1, with Q(k, x) = Γ(k, x)/Γ(k),

    E[X − x | X > x] = k Q(k+1, x)/Q(k, x) − x.

Far out both terms are close to x, and Q underflows. There Legendre's continued fraction of Γ(k, x)
(Abramowitz and Stegun, 6.5.31), with the leading terms cancelled on paper, leaves

    E[X − x | X > x] = 1 + 1(k−1)/(x+3−k + 2(k−2)/(x+5−k + 3(k−3)/(x+7−k + …))).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

FARTHEST = 1e300
MOST_TERMS = 2000


def is_far(shape: float, x: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether x is so far above the mean that the continued fraction is the better way."""
    return x > shape + 2.0 + 3.0 * sqrt(shape)


def survival(shape: float, x: FloatArray) -> FloatArray:
    """Q(k, x), which is 1 for x ≤ 0."""
    from scipy.special import gammaincc  # noqa: PLC0415 - keeps `import malleable` light

    return np.asarray(gammaincc(shape, np.clip(x, 0.0, FARTHEST)), dtype=float)


def mean_remaining(shape: float, x: FloatArray) -> FloatArray:
    """E[X − x | X > x] for a gamma variable X of rate 1."""
    x = np.minimum(x, FARTHEST)
    far = is_far(shape, x)
    near = np.where(far, 0.0, x)
    out: FloatArray = shape * survival(shape + 1.0, near) / survival(shape, near) - near
    if far.any():
        out = np.where(far, _fraction(shape, np.where(far, x, FARTHEST)), out)
    return out


def _fraction(shape: float, x: FloatArray) -> FloatArray:
    """The continued fraction by Lentz's method, from the left until nothing changes."""
    value = ratio = np.ones_like(x)
    inverse = np.zeros_like(x)
    for n in range(1, MOST_TERMS):
        a, b = n * (shape - n), x + (2 * n + 1 - shape)
        inverse = 1.0 / (b + a * inverse)
        ratio = b + a / ratio
        step = ratio * inverse
        value = value * step
        if np.abs(step - 1.0).max() < 4e-16:
            break
    return value
