"""One job at a price: what it rents, and its Whittle index, by either arm.

`optimal_arm` solves the paper's discounted single-armed bandit: the job may take another number of cores at
any time. `constant_arm` lets it choose one action for life, as the paper's definition of its policy does; the
two are the same only as α → 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.spec import Positive, validate
from malleable.errors import MalleableError, ParameterError
from malleable.theory.constant_arm import ConstantArms
from malleable.theory.optimal_arm import REACH, Arms, OptimalArms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from malleable.contracts import FloatArray, Speedup

ROUNDING = 1e-9


def kind_of_arm(*, constant: bool) -> type[Arms]:
    """One action for life, or the optimal one."""
    return ConstantArms if constant else OptimalArms


def least_cost(
    speedup: Speedup,
    remaining: ArrayLike,
    weight: ArrayLike,
    price: ArrayLike,
    discount: float,
    *,
    constant: bool = False,
) -> Any:
    """V(x): the least discounted cost of a job that rents cores at a price; waiting forever costs c."""
    x, c, l = np.broadcast_arrays(*_checked(remaining=remaining, weight=weight, price=price))
    arms = _arms(speedup, x.ravel(), c.ravel(), discount, REACH, constant=constant)
    return arms.value(l.ravel()).reshape(x.shape)[()]


def optimal_action(
    speedup: Speedup,
    remaining: ArrayLike,
    weight: ArrayLike,
    price: ArrayLike,
    discount: float,
    *,
    limit: float = REACH,
    constant: bool = False,
) -> Any:
    """The cores a job rents now, 0 or from 1 to `limit`, job by job (arguments are broadcast).

    With `constant` it holds them for life.
    """
    x, c, l = np.broadcast_arrays(*_checked(remaining=remaining, weight=weight, price=price))
    arms = _arms(speedup, x.ravel(), c.ravel(), discount, limit, constant=constant)
    return arms.action(l.ravel()).reshape(x.shape)[()]


def whittle_index(
    speedup: Speedup,
    remaining: ArrayLike,
    weight: ArrayLike,
    discount: float,
    *,
    limit: float = REACH,
    constant: bool = False,
) -> Any:
    """The price at which a job is indifferent between waiting and being served; c/x as α → 0."""
    x, c = np.broadcast_arrays(*_checked(remaining=remaining, weight=weight))
    with np.errstate(over="ignore"):
        return np.exp(
            _arms(speedup, x.ravel(), c.ravel(), discount, limit, constant=constant).log_index
        ).reshape(x.shape)[()]


@dataclass(frozen=True)
class Indexability:
    """What a check on a grid of prices found."""

    worst_rise: float
    """The largest rise of an action from one price to the next higher one, as a share of the action."""
    price: float
    """The price before that rise."""
    free_share: float
    """The narrowest action at price 0, as a share of the width beyond which cores do not help."""

    @property
    def holds(self) -> bool:
        """Whether actions never rise with the price and reach the widest useful one when cores are free."""
        return self.worst_rise <= ROUNDING and self.free_share >= 1.0 - ROUNDING


def indexability(
    speedup: Speedup,
    remaining: ArrayLike,
    weight: ArrayLike,
    discount: float,
    prices: ArrayLike,
    *,
    constant: bool = False,
) -> Indexability:
    """Check on a grid of prices that optimal actions fall with the price, and are widest when it is 0."""
    x, c = np.broadcast_arrays(*_checked(remaining=remaining, weight=weight))
    arms = _arms(speedup, x.ravel(), c.ravel(), discount, REACH, constant=constant)
    (grid,) = _checked(price=np.sort(np.ravel(prices)))
    actions = np.stack([arms.action(price) for price in grid])
    rises = (np.diff(actions, axis=0) / np.maximum(actions[1:], 1.0)).max(axis=1, initial=0.0)
    worst = int(np.argmax(rises)) if len(rises) else 0
    free = arms.action(0.0) / arms.high
    return Indexability(float(rises.max(initial=0.0)), float(grid[worst]), float(free.min(initial=1.0)))


def _arms(
    speedup: Speedup, x: FloatArray, c: FloatArray, discount: float, limit: float, *, constant: bool
) -> Arms:
    try:
        alpha = validate(Positive, discount)
    except MalleableError as error:
        raise error.within("discount") from None
    if not limit >= 1.0:
        raise ParameterError(f"must be at least 1, got {limit!r}", path=("limit",))
    reach = min(float(limit), REACH)
    return kind_of_arm(constant=constant)(speedup.capped(reach), x, c, alpha, reach)


def _checked(**columns: ArrayLike) -> list[FloatArray]:
    """The columns as arrays of finite numbers; only the weight must not be 0."""
    arrays = []
    for name, values in columns.items():
        array = np.asarray(values, dtype=float)
        bad = ~np.isfinite(array) | (array <= 0.0 if name == "weight" else array < 0.0)
        if bad.any():
            allowed = "positive" if name == "weight" else "at least 0"
            raise ParameterError(f"must be finite and {allowed}, got {array[bad].flat[0]:g}", path=(name,))
        arrays.append(array)
    return arrays
