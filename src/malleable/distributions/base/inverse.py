"""How a law is drawn from one uniform number on a GPU, where that has a closed form or values to choose from.

A law says so beside its class, and is found with it by listing the folder; every other law is tabulated from
its survival function (`engine.gpu.laws`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.numerics.places import places

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray


class Row(NamedTuple):
    """What stands in a row of encoded laws."""

    FAMILY: int
    A: int
    B: int
    C: int
    D: int
    """Numbers of the law."""
    START: int
    COUNT: int
    """Where its data stand, and how many there are."""
    NOTHING: int


LAW = places(Row)


class Inverse(NamedTuple):
    """The inverse of P(X > x) as a plain function, `variate(laws, row, u)`."""

    numbers: Callable[[Any], tuple[float, ...]]
    """At most four numbers of a law, which stand in A, B, C and D of its row."""
    variate: Callable[[Any, Any, float], float]
    """The x that is exceeded with probability u."""
    continuous: bool = True
    """Whether two values are never the same."""


class Steps(NamedTuple):
    """A law on finitely many values."""

    of: Callable[[Any], tuple[FloatArray, FloatArray]]
    """Cumulated probabilities, and the values, which fall."""
