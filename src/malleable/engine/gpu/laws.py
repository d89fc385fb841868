"""Laws of times as rows of numbers, and the plain function that draws from them.

A law is drawn by its inverse: with S(x) = P(X > x) and U uniform, the x at which S(x) = U. Closed forms are
written out; a law on finitely many values is a search in its cumulated probabilities; every other one is
tabulated (see `inverse_table`). One row per law:

    laws[8·i : …]      code, four parameters, where its data start, how many there are

A mixture is drawn as one of its components, so that the coin that chooses the class of a job chooses the
component too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.distributions.bounded_pareto import BoundedPareto
from malleable.distributions.deterministic import Deterministic
from malleable.distributions.empirical import Empirical
from malleable.distributions.exponential import Exponential
from malleable.distributions.pareto import Pareto
from malleable.distributions.uniform import Uniform
from malleable.engine.gpu.inverse_table import KNOTS_PER_UNIT, scaled_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution, FloatArray

EXPONENTIAL, DETERMINISTIC, UNIFORM, PARETO, BOUNDED_PARETO, VALUES, TABULATED = range(7)
ROW = 8
START, COUNT = 5, 6


class Laws(NamedTuple):
    """Encoded laws, and how far a tabulated inverse may be off, relative to the value."""

    encoded: FloatArray
    error: float

    @property
    def exponential(self) -> bool:
        """Whether all are exponential."""
        rows = self.encoded[: int(self.encoded[-1]) * ROW].reshape(-1, ROW)
        return bool((rows[:, 0] == EXPONENTIAL).all())

    @property
    def continuous(self) -> bool:
        """Whether two values are never the same."""
        rows = self.encoded[: int(self.encoded[-1]) * ROW].reshape(-1, ROW)
        return not bool(np.isin(rows[:, 0], (DETERMINISTIC, VALUES)).any())


def components(law: Distribution) -> list[tuple[float, Distribution]]:
    """A law as a mixture: probabilities and laws; exponentials where it is a mixture of those."""
    phases = law.phase_type()
    if phases is not None:
        start, rates = phases
        diagonal = np.diag(rates)
        if np.array_equal(rates, np.diag(diagonal)):
            total = float(np.sum(start))
            pairs = zip(start, diagonal, strict=True)
            return [(float(p) / total, Exponential(rate=-float(d))) for p, d in pairs if p > 0.0]
    return [(1.0, law)]


def encode_laws(laws: Sequence[Distribution]) -> Laws:
    """All laws in one flat array, the last entry of which is their number."""
    rows = np.zeros((len(laws), ROW))
    data: list[FloatArray] = []
    end, error = rows.size, 0.0
    for row, law in zip(rows, laws, strict=True):
        parameters, values, off = _described(law)
        row[: len(parameters)] = parameters
        row[START], row[COUNT] = end, len(values)
        data.append(values)
        end += len(values)
        error = max(error, off)
    return Laws(np.concatenate([rows.ravel(), *data, [float(len(laws))]]), error)


def _described(law: Any) -> tuple[tuple[float, ...], FloatArray, float]:  # noqa: PLR0911 - ditto
    """Code and parameters, data, and the error of a law; a subclass may have changed the formulas."""
    none = np.zeros(0)
    if type(law) is Exponential:
        return (EXPONENTIAL, 1.0 / law.rate), none, 0.0
    if type(law) is Deterministic:
        return (DETERMINISTIC, law.value), none, 0.0
    if type(law) is Uniform:
        return (UNIFORM, law.high, law.high - law.low), none, 0.0
    if type(law) is Pareto:
        low = law.mean * (law.shape - 1.0) / law.shape
        return (PARETO, low, 1.0 / law.shape), none, 0.0
    if type(law) is BoundedPareto:
        cut = -math.expm1(-law.shape * math.log(law.high / law.low))
        return (BOUNDED_PARETO, law.low, 1.0 / law.shape, cut, law.high), none, 0.0
    if type(law) is Empirical:
        values = np.sort(np.array(law.values, dtype=float))[::-1]
        return (VALUES,), np.concatenate([np.arange(1.0, len(values) + 1.0) / len(values), values]), 0.0
    table = scaled_table(law)
    if table.steps:
        return (VALUES,), np.concatenate([table.chances, table.values]), table.error
    return (TABULATED, table.first), np.concatenate([table.values, table.slopes]), table.error


def variate(laws: Any, i: Any, u: float) -> float:  # noqa: PLR0911 - one a kind
    """The x at which law i is exceeded with probability u."""
    row = ROW * i
    code = int(laws[row])
    if code == EXPONENTIAL:
        return -math.log(u) * float(laws[row + 1])
    if code == DETERMINISTIC:
        return float(laws[row + 1])
    if code == UNIFORM:
        return float(laws[row + 1]) - float(laws[row + 2]) * u
    if code == PARETO:
        return float(laws[row + 1]) * math.exp(-math.log(u) * float(laws[row + 2]))
    if code == BOUNDED_PARETO:
        above = -math.log1p(-(1.0 - u) * float(laws[row + 3])) * float(laws[row + 2])
        return min(float(laws[row + 1]) * math.exp(above), float(laws[row + 4]))
    start, count = int(laws[row + START]), int(laws[row + COUNT])
    if code == VALUES:
        return _searched(laws, start, count // 2, u)
    return _interpolated(laws, start, count // 2, float(laws[row + 1]), u)


def _searched(laws: Any, start: int, count: int, u: float) -> float:
    """The first of the values, which fall, whose cumulated probability exceeds u."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if laws[start + middle] > u:
            high = middle
        else:
            low = middle + 1
    return float(laws[start + count + low])


def _interpolated(laws: Any, start: int, count: int, first: float, u: float) -> float:
    """exp y(log E), E = −log u, by cubic Hermite interpolation; beyond the ends along the last slope."""
    w = (math.log(-math.log(u)) - first) * KNOTS_PER_UNIT
    knot = min(max(int(w // 1.0), 0), count - 2)
    t = w - knot
    y0, y1 = float(laws[start + knot]), float(laws[start + knot + 1])
    d0, d1 = float(laws[start + count + knot]), float(laws[start + count + knot + 1])
    if t < 0.0:
        return math.exp(y0 + t * d0)
    if t > 1.0:
        return math.exp(y1 + (t - 1.0) * d1)
    rise = y1 - y0
    return math.exp(y0 + t * (d0 + t * (3.0 * rise - 2.0 * d0 - d1 + t * (d0 + d1 - 2.0 * rise))))
