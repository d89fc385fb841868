"""Laws of times as rows of numbers, and the plain function that draws from them.

A law is drawn by its inverse: with S(x) = P(X > x) and U uniform, the x at which S(x) = U. Closed forms stand
beside the laws and are found by listing the folder; a law on finitely many values is a search in its
cumulated probabilities; every other one is tabulated. A row has the columns of
`distributions.base.inverse.Row`.

A mixture is drawn as one of its components, so that the coin that chooses the class of a job chooses the
component too.

The inverse of a survival function as a table, and how far it is off.

With E = −log P(X > x), which is exponential of mean 1, and w = log E, the logarithm y of x is a smooth
function of w for most laws: straight for Weibull's, and at both ends of many others. It is tabulated at
`KNOTS_PER_UNIT` knots per unit of w from E = 1e-6 up to the largest E of a uniform number of 48 bits, with
its slopes, for cubic Hermite interpolation. Below, y goes on along its first slope: that concerns one value
in a million, among the smallest.

`error` is the largest relative distance of the interpolated from the true x, at three places between every
two knots. A law on separate values is no smooth function; it becomes a list of its values and their cumulated
probabilities.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable import catalog
from malleable.distributions.base.inverse import LAW, Inverse, Steps
from malleable.distributions.exponential import Exponential
from malleable.engine.dispatch import by_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution, FloatArray


KNOTS_PER_UNIT = 128.0
FIRST = float(np.log(1e-6))
LAST = float(np.log(49.0 * np.log(2.0)))
HALVINGS = 90
WIDEST = 320.0
"""Logarithms of values, in units of the mean, lie within this of 0."""
SAME = 1e-12
"""Relative distance of what is one value."""


class InverseTable(NamedTuple):
    """y and its slope per knot, from the knot `first` on; or values that fall, and cumulated chances."""

    first: float
    values: FloatArray
    slopes: FloatArray
    chances: FloatArray
    error: float

    @property
    def steps(self) -> bool:
        """Whether the law is one on separate values."""
        return len(self.chances) > 0


def scaled_table(law: Distribution) -> InverseTable:
    """The table of a law, made once for all multiples of it: a factor adds to the logarithms of values."""
    mean = float(law.mean)
    if not 0.0 < mean < math.inf:
        return tabulate(law)
    try:
        table = _of_unit_mean(law.scaled(1.0 / mean))
    except TypeError:  # a law that cannot be the key of a cache
        return tabulate(law)
    return table._replace(values=table.values * mean if table.steps else table.values + math.log(mean))


@functools.lru_cache(maxsize=64)
def _of_unit_mean(law: Distribution) -> InverseTable:
    return tabulate(law)


def tabulate(law: Distribution) -> InverseTable:
    """The table of any law that has a survival function."""
    none = np.zeros(0)
    count = int(np.ceil((LAST - FIRST) * KNOTS_PER_UNIT)) + 2
    w = FIRST + np.arange(count) / KNOTS_PER_UNIT
    y = log_inverse(law, np.exp(w))
    flat = np.diff(y) <= SAME
    if flat.mean() > 0.5:
        return _on_values(law, y)
    slopes = np.gradient(y, edge_order=2)
    slopes[2:-2] = (8.0 * (y[3:-1] - y[1:-3]) - (y[4:] - y[:-4])) / 12.0
    worst = 0.0
    for t in (0.25, 0.5, 0.75):
        true = log_inverse(law, np.exp(w[:-1] + t / KNOTS_PER_UNIT))
        rise, d0, d1 = np.diff(y), slopes[:-1], slopes[1:]
        near = y[:-1] + t * (d0 + t * (3.0 * rise - 2.0 * d0 - d1 + t * (d0 + d1 - 2.0 * rise)))
        worst = max(worst, float(np.abs(np.expm1(near - true)).max()))
    return InverseTable(FIRST, y, slopes, none, worst)


def log_inverse(law: Distribution, exponentials: FloatArray) -> FloatArray:
    """log x at which −log P(X > x) reaches the given numbers, by bisection."""
    unit = float(np.log(law.mean))
    low, high = np.full(len(exponentials), unit - WIDEST), np.full(len(exponentials), unit + WIDEST)
    alive = np.exp(-exponentials)
    with np.errstate(all="ignore"):
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = law.survival(np.exp(middle)) > alive
            low, high = np.where(above, middle, low), np.where(above, high, middle)
    found: FloatArray = 0.5 * (low + high)
    return found


def _on_values(law: Distribution, y: FloatArray) -> InverseTable:
    """Values that fall, and the probability of that value or a larger one."""
    kept = np.concatenate([[True], np.diff(y) > 1e-9])
    values = np.exp(y[kept])[::-1]
    chances = law.survival(values * (1.0 - 1e-9))
    none = np.zeros(0)
    return InverseTable(0.0, values, none, np.asarray(chances, dtype=float), 1e-12)


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
