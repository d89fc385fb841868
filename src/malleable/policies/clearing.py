"""The jobs present cleared at a reservation price: SmartFill that knows that others will come.

SmartFill divides the cores as if nothing more arrived, so a core is worth nothing once the present jobs are
done, and it spends cores on little speed. Here a core that the present jobs do not use is let at a price l0:

    minimise Σ c_j T_j + l0·(core-time used).

The costates of `theory.clearing` follow from the same recursion with C_k + l0·n in place of C_k, at prices of
l0 and more; l0 = 0 is SmartFill, and where the jobs want no more than all cores at l0 it is WHAM.

What a core is worth to jobs that are still to come is the price in the long run. In simulations that is l* of
the relaxed problem on whole cores. The live scheduler, which knows no rates of arrival, takes the price that
its own decisions have had on average (`live.core.core_price`). `factor` multiplies it: at a high load a core
is worth more than l* while a queue lasts, and no factor of 0 or more makes the policy unsafe, as very high
prices give the widths of WHAM.

The order in which the jobs finish is a guess. Jobs with a large x/(s(k)·c^power) finish last. With `share` k
is an equal share of the cores, and the power ½; with `alone` k is the width of a job that has the machine for
itself, and `power` is given. For each order Σ costate·x is a lower bound on the cost, and the least of all
orders is attained by the best one (`theory.clearing`): `best` takes the least of these guesses while few jobs
are present.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from malleable.errors import InfeasibleError
from malleable.policies.base import ANY, Need, NonNegative, Program, memoized
from malleable.policies.rules.market import MARKET, end_of_market
from malleable.policies.rules.smartfill_rule import ALONE, BEST, KEPT, SHARE
from malleable.policies.smartfill import Smartfill
from malleable.policies.wham import Wham
from malleable.theory.relaxed import long_run_price

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

ORDERS = {"share": SHARE, "alone": ALONE, "best": BEST}


@dataclass(frozen=True)
class Clearing(Smartfill):
    """Clear the jobs present at the `price` of a core: what it is worth to later jobs, found if not given."""

    needs = "speedups, work left; rates and mean sizes where no price is given (a broker finds it)"

    price: NonNegative | None = None
    factor: NonNegative = 1.0
    order: Literal["share", "alone", "best"] = "share"
    power: NonNegative = 0.5

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        try:
            price = _long_run_price(need.arrivals(workload), cores) if self.price is None else self.price
        except InfeasibleError:  # no price is high enough for so much work
            return Wham().program(workload, cores, need._replace(by_job=True))
        made = super().program(workload, cores, need)
        kept = end_of_market(made.table)
        made.table[kept + KEPT.RESERVATION] = price * self.factor
        made.table[kept + KEPT.ORDER], made.table[kept + KEPT.POWER] = ORDERS[self.order], self.power
        return made._replace(price=cleared_price)


def cleared_price(rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:  # noqa: ARG001
    """The price of the last decision; None where cores are left over."""
    price = float(table[int(table[1]) + MARKET.CLEARED])
    return price if price > 0.0 else None


@memoized
def _long_run_price(workload: Workload, cores: float) -> float:
    return long_run_price(workload, cores)
