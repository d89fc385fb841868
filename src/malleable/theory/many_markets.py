"""The markets of many states at once, followed by an integrator step by step (see `many_trajectories`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.theory.fluid import Fluid

SECANTS, FOLLOWED = 12, 1e-11
"""Secant steps that may be spent on following a price, and the relative error that ends them."""
LARGE, TINY, FAR = 1e3, 1e-300, 640.0


class Markets(NamedTuple):
    """One market per row: the last price, and the quantities on both sides of it."""

    price: FloatArray
    """Positive and finite; where jobs do not compete (`slack`, `crowded`), the price when they last did."""
    low: FloatArray
    high: FloatArray
    share: FloatArray
    slack: NDArray[np.bool_]
    """Whether every job has all that helps."""
    crowded: NDArray[np.bool_]
    """Whether jobs time-share."""

    @property
    def quantities(self) -> FloatArray:
        """The quantities that use exactly the cores there are."""
        return np.asarray(self.low + self.share[:, None] * (self.high - self.low))

    def speeds(self, fluid: Fluid) -> FloatArray:
        """The speed of a job of each class."""
        slow = fluid.buyers.speedups(self.low)
        if not self.share.any():
            return slow
        return np.asarray(slow + self.share[:, None] * (fluid.buyers.speedups(self.high) - slow))

    def rows(self, chosen: NDArray[np.bool_]) -> Markets:
        """Some of the markets."""
        return Markets(*(array[chosen] for array in self))  # type: ignore[arg-type]

    def where(self, chosen: NDArray[np.bool_], others: Markets) -> Markets:
        """These markets in the chosen rows, others elsewhere."""
        return Markets(
            *(
                np.where(chosen if mine.ndim == 1 else chosen[:, None], mine, theirs)
                for mine, theirs in zip(self, others, strict=True)
            )
        )


def first_markets(fluid: Fluid, jobs: FloatArray, price: float) -> Markets:
    """The markets of some class counts, when a price near some of them is known."""
    rows, classes = jobs.shape
    price = price if 0.0 < price < np.inf else 1.0
    none = np.zeros(rows, dtype=bool)
    widths = np.zeros((rows, classes))
    return followed(fluid, jobs, Markets(np.full(rows, price), widths, widths, np.zeros(rows), none, none))


def followed(fluid: Fluid, jobs: FloatArray, previous: Markets) -> Markets:
    """The markets of these class counts, from similar ones; one by one where that does not succeed."""
    needed = jobs @ fluid.buyers.floor
    crowded = (needed >= fluid.cores) & fluid.shares_time
    slack = jobs.max(axis=1) <= 0.0
    low, high, share = previous.low.copy(), previous.high.copy(), previous.share.copy()
    low[slack] = high[slack] = share[slack] = 0.0
    low[crowded], high[crowded] = 0.0, fluid.buyers.least
    share[crowded] = fluid.cores / needed[crowded]
    if fluid.satiable:
        sated = ~slack & ~crowded & (jobs @ fluid.buyers.most <= fluid.cores)
        low[sated] = high[sated] = fluid.buyers.most
        share[sated] = 0.0
        slack = slack | sated
    markets = Markets(previous.price.copy(), low, high, share, slack, crowded)
    left = ~slack & ~crowded
    left = left & ~_same_tie(fluid, jobs, markets, left & ~previous.crowded & ~previous.slack)
    for row in _without_price(fluid, jobs, markets, np.flatnonzero(left)):
        found = fluid.market(jobs[row])
        low[row], high[row], share[row] = found.low, found.high, found.share
        if 0.0 < found.price < np.inf:
            markets.price[row] = found.price
        else:
            slack[row] = True
    return markets


def _same_tie(
    fluid: Fluid, jobs: FloatArray, markets: Markets, candidates: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Where the cores still end within the jump that they ended in before, it is only shared anew."""
    narrow, wide = (jobs * markets.low).sum(axis=1), (jobs * markets.high).sum(axis=1)
    tied: NDArray[np.bool_] = candidates & (narrow <= fluid.cores) & (wide > fluid.cores)
    markets.share[tied] = (fluid.cores - narrow[tied]) / (wide[tied] - narrow[tied])
    return tied


def _without_price(
    fluid: Fluid, jobs: FloatArray, markets: Markets, rows: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Secant steps in log price and log demand from the last prices; the rows where they do not arrive."""
    lost = [rows[:0]]
    u, slope = np.log(markets.price[rows]), -np.ones(len(rows))
    before = last = np.zeros(len(rows))
    for step in range(SECANTS):
        price = np.exp(u)
        bought = fluid.bought(price[:, None])
        excess = np.log(np.maximum((jobs[rows] * bought).sum(axis=1), TINY) / fluid.cores)
        found = np.abs(excess) <= FOLLOWED
        arrived = rows[found]
        markets.price[arrived], markets.share[arrived] = price[found], 0.0
        markets.low[arrived] = markets.high[arrived] = bought[found]
        if step:
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = (excess - before) / last
        going = ~found & (slope > -LARGE) & (slope < -1.0 / LARGE)
        lost.append(rows[~found & ~going])
        rows, u, slope, before = rows[going], u[going], slope[going], excess[going]
        last = -before / slope
        u = np.clip(u + last, -FAR, FAR)
        if not len(rows):
            break
    return np.concatenate([*lost, rows])
