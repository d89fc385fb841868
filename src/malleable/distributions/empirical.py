"""The empirical law: each of the given values with equal probability, drawn with replacement.

E[X^r] is the mean of the r-th powers of the values. In a document the values stand in place or in a `file`
with one number per line; a path is taken from the working directory, and the law holds the numbers, not the
path, so that it stays the same when the file changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.inverse import Steps
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from malleable.contracts import FloatArray

ONE_PER_LINE = "write one number greater than 0 per line"


def _read(given: Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers of a text or CSV file of one column: blank lines, `#` comments and a header are skipped."""
    file = given["file"]
    if not isinstance(file, str | Path):
        raise ParameterError(f"must be the path of a file, got {file!r:.60}")
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        hint = f"give the path from {str(Path.cwd())!r} of a text file with one number per line"
        raise ParameterError(f"cannot read {str(file)!r}: {reason.lower()}", hint) from None
    return read_lines(lines, repr(str(file)))


def read_lines(lines: Iterable[str], name: str) -> tuple[float, ...]:
    """The numbers in the lines of a file of one column."""
    texts = [(number, _entry(line)) for number, line in enumerate(lines, start=1)]
    texts = [(number, text) for number, text in texts if text]
    if texts and _is_header(texts[0][1]):
        del texts[0]
    if not texts:
        raise ParameterError(f"{name} holds no numbers", ONE_PER_LINE)
    values = []
    for number, text in texts:
        value = _number(text)
        if not 0.0 < value < inf:
            problem = f"line {number} of {name} is not a positive number: {text!r:.60}"
            raise ParameterError(problem, ONE_PER_LINE)
        values.append(value)
    return tuple(values)


def _entry(line: str) -> str:
    """What a line holds, without comment, trailing comma and quotes."""
    return line.partition("#")[0].strip().rstrip(",").strip("\"' \t")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _is_header(text: str) -> bool:
    """Whether this is a word; `12x` is a mistyped number, and `nan` is one that was not measured."""
    return text[0].isalpha() and text.lower() not in {"nan", "inf", "infinity"}


def steps(law: Empirical) -> tuple[FloatArray, FloatArray]:
    """Each of the values, the largest first, with equal probability."""
    values = np.sort(np.array(law.values, dtype=float))[::-1]
    return np.arange(1.0, len(values) + 1.0) / len(values), values


@dataclass(frozen=True)
class Empirical(Distribution):
    """Resampled measurements: the values themselves, or a file that holds them."""

    values: tuple[Positive, ...]

    inverse: ClassVar = Steps(steps)
    alternatives: ClassVar = {"file": ("values", _read)}

    def check(self) -> None:
        if not self.values:
            raise ParameterError("must not be empty", "give at least one value", ("values",))

    @cached_property
    def _array(self) -> FloatArray:
        return np.array(self.values)

    def moment(self, order: int) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.mean(self._array**order))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.choice(self._array, size)

    @cached_property
    def _sorted(self) -> FloatArray:
        return np.sort(self._array)

    @cached_property
    def _means_above(self) -> FloatArray:
        """Entry i: the mean of v − vᵢ over the values v from the i-th smallest on; 0 past the last.

        Summed from the largest down, gap by gap, so that no large numbers are subtracted.
        """
        counts = np.arange(len(self._array) - 1, 0, -1)
        sums = np.cumsum((counts * np.diff(self._sorted))[::-1])[::-1]
        return np.concatenate([sums / (counts + 1.0), [0.0, 0.0]])

    def survival(self, x: FloatArray) -> FloatArray:
        below = np.searchsorted(self._sorted, x, side="right")
        return (len(self._array) - below) / len(self._array)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        following = np.searchsorted(self._sorted, done, side="right")
        step = np.append(self._sorted, 0.0)[following] - done
        return np.where(following < len(self._array), step + self._means_above[following], 0.0)

    def scaled(self, factor: float) -> Empirical:
        with np.errstate(over="ignore", under="ignore"):
            return Empirical(tuple((self._array * factor).tolist()))
