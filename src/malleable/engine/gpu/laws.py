"""Laws of times as rows of numbers, and the plain function that draws from them.

A law is drawn by its inverse: with S(x) = P(X > x) and U uniform, the x at which S(x) = U. Closed forms stand
beside the laws and are found by listing the folder; a law on finitely many values is a search in its
cumulated probabilities; every other one is tabulated (see `inverse_table`). A row has the columns of
`distributions.base.inverse.Row`.

A mixture is drawn as one of its components, so that the coin that chooses the class of a job chooses the
component too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable import catalog
from malleable.distributions.base.inverse import LAW, Inverse, Steps
from malleable.distributions.exponential import Exponential
from malleable.engine.dispatch import by_code
from malleable.engine.gpu.inverse_table import KNOTS_PER_UNIT, scaled_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution, FloatArray

ROW = len(LAW)


def _with_inverses() -> dict[type, Inverse]:
    """The laws of the library that have a closed form; their places are their codes."""
    here = __name__.partition(".")[0] + "."
    kinds = sorted(kind for kind, place in catalog.kinds("distributions").items() if place.startswith(here))
    found = {law: vars(law).get("inverse") for law in (catalog.find("distributions", kind) for kind in kinds)}
    return {law: inverse for law, inverse in found.items() if isinstance(inverse, Inverse)}


INVERSES = _with_inverses()
CODES = {law: code for code, law in enumerate(INVERSES)}
EXPONENTIAL, VALUES, TABULATED = CODES[Exponential], len(CODES), len(CODES) + 1


class Laws(NamedTuple):
    """Encoded laws, and how far a tabulated inverse may be off, relative to the value."""

    encoded: FloatArray
    error: float

    @property
    def exponential(self) -> bool:
        """Whether all are exponential."""
        rows = self.encoded[: int(self.encoded[-1]) * ROW].reshape(-1, ROW)
        return bool((rows[:, LAW.FAMILY] == EXPONENTIAL).all())

    @property
    def continuous(self) -> bool:
        """Whether two values are never the same."""
        rows = self.encoded[: int(self.encoded[-1]) * ROW].reshape(-1, ROW)
        separate = [code for code, one in enumerate(INVERSES.values()) if not one.continuous]
        return not bool(np.isin(rows[:, LAW.FAMILY], [*separate, VALUES]).any())


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
        row[LAW.START], row[LAW.COUNT] = end, len(values)
        data.append(values)
        end += len(values)
        error = max(error, off)
    return Laws(np.concatenate([rows.ravel(), *data, [float(len(laws))]]), error)


def _described(law: Any) -> tuple[tuple[float, ...], FloatArray, float]:
    """Code and numbers, data, and the error of a law; a subclass may have changed the formulas."""
    if type(law) in INVERSES:
        return (float(CODES[type(law)]), *INVERSES[type(law)].numbers(law)), np.zeros(0), 0.0
    own = vars(type(law)).get("inverse")
    if isinstance(own, Steps):
        return (VALUES,), np.concatenate(own.of(law)), 0.0
    table = scaled_table(law)
    if table.steps:
        return (VALUES,), np.concatenate([table.chances, table.values]), table.error
    return (TABULATED, table.first), np.concatenate([table.values, table.slopes]), table.error


def _searched(laws: Any, row: Any, u: float) -> float:
    """The first of the values, which fall, whose cumulated probability exceeds u."""
    start, count = int(laws[row + LAW.START]), int(laws[row + LAW.COUNT]) // 2
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if laws[start + middle] > u:
            high = middle
        else:
            low = middle + 1
    return float(laws[start + count + low])


def _interpolated(laws: Any, row: Any, u: float) -> float:
    """exp y(log E), E = −log u, by cubic Hermite interpolation; beyond the ends along the last slope."""
    start, count = int(laws[row + LAW.START]), int(laws[row + LAW.COUNT]) // 2
    w = (math.log(-math.log(u)) - float(laws[row + LAW.A])) * KNOTS_PER_UNIT
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


_variate = by_code([*(one.variate for one in INVERSES.values()), _searched, _interpolated])


def variate(laws: Any, i: Any, u: float) -> float:
    """The x at which law i is exceeded with probability u."""
    return _variate(laws, ROW * i, u)  # type: ignore[no-any-return]
