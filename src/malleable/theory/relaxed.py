"""The relaxed problem and its lower bound V*, for any speedup, any GI/GI input, any n and any policy.

Let jobs use n cores *on average* instead of at every moment. A unit of class-i work run on k cores takes
1/s_i(k) time, costs c_i/s_i(k) and uses k/s_i(k) core-time, so with price l for a unit of core-time

    φ_i(l) = min_{k≥1} (c_i + l·k)/s_i(k),      V* = max_{l≥0} (1/λ) [Σ_i load_i φ_i(l) − l·n],

a concave maximisation (FW-Relax of the paper, by its dual, which needs neither concave speedups nor
derivatives). At the best price l* the core-time used is n: Σ load_i k_i/s_i(k_i) = n. Where two widths tie
at l*, work is split between them; the reported width is their average over time, which lies on the chord.
A little more core-time saves l* of holding cost per unit of it, dV*/dn = −l*/λ. Where widths are restricted,
one more core is more than that: it allows jobs to be wider, too. There the saving is λ(V*(n) − V*(n + 1)).

Two restrictions make the bound tighter, and each holds for whoever keeps to it: no job is ever on more than n
cores (every policy), and jobs get whole cores only (policies that say so, `Policy.whole_cores`). Where the
classes of a workload restrict the widths, all three bounds are those of that problem.

Where the number of cores changes over time, jobs use at most its average, on average, so the bound is that of
so many cores, with no job above the most there ever are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable import notebooks
from malleable.errors import InfeasibleError, UnsupportedError
from malleable.model import Workload, checked_cores
from malleable.model.memoization import memoized
from malleable.theory.market import UNLIMITED, Buyers, WhittleBuyers, clear
from malleable.theory.restricted_widths import RestrictedBuyers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

SLOW = 1e-100
ROUNDING = 1e-12
"""A load this close to 1 counts as 1."""


CAPPED = "V*, no job above n cores"
WHOLE = "V*, whole cores, no job above n"
"""What results call the bounds that they are compared with."""


class ClassBound(NamedTuple):
    """One class at the relaxed optimum: cores per job, mean response time, mean number present."""

    name: str
    cores: float
    response_time: float
    jobs: float


@dataclass(frozen=True)
class Bound:
    """The lower bound on the cost of any policy, and the widths that attain it in the limit."""

    cores: float
    load: float
    bound: float
    """V*: no policy has a lower mean holding cost per job."""
    bound_capped: float
    """The tighter bound that no job may use more than n cores."""
    bound_integer: float
    """The tighter still that, besides, jobs get whole cores only."""
    price: float
    """l*: what one more core saves per unit of time; without the wider jobs that it allows."""
    effective_load: float
    """Share of the cores in use."""
    classes: tuple[ClassBound, ...]
    kkt_residual: float
    """How far the solution is from satisfying the optimality conditions, relative to V*."""
    workload: Workload = field(repr=False)
    mean_cores: float = 0.0
    """Cores there are on average, where their number changes."""
    unrestricted: float = 0.0
    """V* if jobs could have any width: what the restricted widths cost at least."""

    @property
    def widths(self) -> FloatArray:
        """k_i*, cores for each job of class i."""
        return np.array([c.cores for c in self.classes])

    def tightest(self, *, whole_cores: bool) -> tuple[float, str]:
        """The highest bound that a policy is known to obey, and its name."""
        return (self.bound_integer, WHOLE) if whole_cores else (self.bound_capped, CAPPED)

    @property
    def core_value(self) -> float:
        """By how much the bound falls with one more core, l*/λ; without the wider jobs that it allows."""
        return self.price / self.workload.total_rate

    @cached_property
    def next_core_value(self) -> float:
        """By how much the bound falls from n to n + 1 cores, which may allow jobs to be wider."""
        more = _relaxed(self.workload, self.cores + 1.0, self.mean_cores + 1.0).value
        return max(self.bound - more, 0.0)

    @property
    def next_core_saves(self) -> float:
        """What n + 1 cores save per unit of time: λ times `next_core_value`."""
        return self.next_core_value * self.workload.total_rate

    def _repr_html_(self) -> str:
        columns = ("class", "cores per job", "response time", "jobs present")
        facts = (
            ("lower bound V*", f"{self.bound:.10g}"),
            ("… with no job on more than n cores", f"{self.bound_capped:.10g}"),
            ("… and whole cores only", f"{self.bound_integer:.10g}"),
            ("price of a core", self.price),
            ("effective load", self.effective_load),
        )
        title = f"{self.workload.name} on {self.cores:g} cores, load {self.load:.4g}: no policy costs less"
        rows = [(c.name, c.cores, c.response_time, c.jobs) for c in self.classes]
        return notebooks.table(title, columns, rows, facts)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable bound`."""
        return {
            "workload": self.workload.name,
            "cores": self.cores,
            "load": self.load,
            "bound": self.bound,
            "bound_capped": self.bound_capped,
            "bound_integer": self.bound_integer,
            "price": self.price,
            "core_value": self.core_value,
            "effective_load": self.effective_load,
            "kkt_residual": self.kkt_residual,
            "classes": [c._asdict() for c in self.classes],
        } | self._about_the_machine()

    def _about_the_machine(self) -> dict[str, Any]:
        """What machines add that demand more of jobs than the paper's."""
        more = {"mean_cores": self.mean_cores} if self.mean_cores != self.cores else {}
        if not self.workload.restricted:
            return more
        return more | {
            "bound_unrestricted": self.unrestricted,
            "next_core_value": self.next_core_value,
            "next_core_saves": self.next_core_saves,
        }


class Relaxation(NamedTuple):
    """A solved relaxed problem, per class: time and core-time for a unit of work."""

    price: float
    value: float
    durations: FloatArray
    """u_i = 1/s_i, averaged over the widths in use."""
    usages: FloatArray
    """v_i = k_i/s_i, likewise."""
    residual: float

    @property
    def widths(self) -> FloatArray:
        """Time-average widths k_i = v_i/u_i."""
        return self.usages / self.durations


def relax(workload: Workload, buyers: Buyers, capacity: float) -> Relaxation:
    """Solve the relaxed problem when class i's jobs choose among the widths that `buyers` offers."""
    check_feasible(workload, buyers, capacity)
    loads, costs = workload.loads, workload.holding_costs / buyers.unit

    def per_unit_of_work(price: float) -> FloatArray:
        k = buyers.demand(price)
        return np.concatenate([k, np.ones_like(k)]) / np.tile(buyers.speedups(k), 2)

    size = len(loads)
    cleared = clear(per_unit_of_work, np.append(loads, np.zeros(size)), capacity)
    usages, durations = np.split(cleared.quantities, 2)
    l, rate = cleared.price, workload.total_rate
    phi = costs * cleared.low[size:] + l * cleared.low[:size]
    # In another unit of time where loads are so small that their costs are no numbers.
    slow = 1.0 if rate > SLOW else 2.0 ** round(np.log2(rate))
    dual = float((loads / slow) @ phi - l * (capacity / slow)) / (rate / slow)
    primal = float((loads / slow) @ (costs * durations)) / (rate / slow)
    overuse = max(0.0, float(loads @ usages) / capacity - 1.0)
    residual = max(abs(primal - dual) / primal, overuse)
    return Relaxation(l * buyers.unit, dual * buyers.unit, durations, usages, residual)


def check_feasible(workload: Workload, buyers: Buyers, capacity: float) -> None:
    """Even at its most efficient, the work that arrives must fit; otherwise say which n would do."""
    # EQUI has no floor: its jobs shrink to a core each, and below that nothing is gained or lost.
    narrow = np.maximum(buyers.floor, 1.0)
    needed = float(workload.loads @ (narrow / buyers.speedups(narrow)))
    if needed >= capacity * (1.0 - ROUNDING):
        least = np.floor(needed * (1.0 + 2.0 * ROUNDING)) + 1.0
        raise InfeasibleError(
            f"the load is {needed / capacity:.4g}: work for {needed:.4g} of {capacity:.4g} cores arrives",
            f"at these arrival rates use at least {least:.15g} cores",
        )


def check_cores(workload: Workload, cores: float, mean_cores: float | None = None) -> None:
    """Whether the cores can do this work at all, with no job on more than there are."""
    try:
        check_feasible(workload, _buyers(workload, cores), cores if mean_cores is None else mean_cores)
    except InfeasibleError as error:
        raise InfeasibleError(error.problem, _what_suffices(workload, cores)) from None


def least_cores(workload: Workload, buyers: Buyers) -> float:
    """The cores that the arriving work keeps busy when every job runs on its most efficient width."""
    return float(workload.loads @ (buyers.least / buyers.speedups(buyers.least)))


def _enough(workload: Workload, cores: float) -> float:
    """The next whole n that suffices, with no job on more than n cores, real or whole."""
    n = needed = np.floor(cores)
    while n * (1.0 - ROUNDING) <= needed < np.inf:
        n = max(n + 1.0, np.floor(needed * (1.0 + 2.0 * ROUNDING)) + 1.0)
        capped, whole = _buyers(workload, n), _buyers(workload, n, integer=True)
        needed = max(least_cores(workload, capped), least_cores(workload, whole))
    return float(max(n, needed))


def _what_suffices(workload: Workload, cores: float) -> str:
    return f"at these arrival rates use at least {_enough(workload, cores):.15g} cores"


def _buyers(workload: Workload, cap: float, *, integer: bool = False) -> WhittleBuyers:
    if workload.restricted:
        return RestrictedBuyers(workload, cap, integer=integer)
    return WhittleBuyers(workload.speedups, workload.holding_costs, cap=cap, integer=integer)


def whole_core_bound(workload: Workload, cores: float, mean_cores: float) -> float:
    """`Bound.bound_integer` alone, for those who ask often."""
    return relax(workload, _buyers(workload, cores, integer=True), mean_cores).value


def _relaxed(workload: Workload, cores: float, mean_cores: float) -> Relaxation:
    """The problem behind V*. Restricted widths end at the cores there are; others have no end."""
    return relax(workload, _buyers(workload, cores if workload.restricted else UNLIMITED), mean_cores)


def long_run_price(workload: Workload, cores: float) -> float:
    """What one more core would save per unit of time if jobs could use any number of them.

    With the cap on the cores there are the price falls to 0 on few cores at a low load, where all jobs are as
    wide as the machine. The core that a job does without is worth something to others all the same.
    """
    return _relaxed(workload, cores, cores).price


@memoized
def bound(workload: Workload, cores: float, mean_cores: float | None = None) -> Bound:
    """The relaxed optimum of a workload on `cores` cores, with its capped and integer variants.

    Of these cores there may be fewer for some of the time, `mean_cores` on average.
    """
    cores = checked_cores(cores)
    there = cores if mean_cores is None else float(mean_cores)
    try:
        free = _relaxed(workload, cores, there)
        capped = relax(workload, _buyers(workload, cores), there)
        whole = relax(workload, _buyers(workload, cores, integer=True), there)
        plain = WhittleBuyers(workload.speedups, workload.holding_costs)
        unrestricted = relax(workload, plain, there).value if workload.restricted else free.value
    except InfeasibleError as error:
        raise InfeasibleError(error.problem, _what_suffices(workload, cores)) from None
    if not 0.0 < free.value <= max(free.value, capped.value, whole.value) < np.inf:
        raise UnsupportedError(
            "the cost is beyond the range of numbers", "choose other units of time and cost"
        )
    responses = workload.mean_sizes * free.durations
    classes = zip(workload.class_names, free.widths, responses, workload.rates * responses, strict=True)
    return Bound(
        cores=cores,
        load=workload.load(cores),
        bound=free.value,
        # Each has fewer choices than the one before it; only rounding can say otherwise.
        bound_capped=max(free.value, capped.value),
        bound_integer=max(free.value, capped.value, whole.value),
        price=free.price,
        effective_load=float(workload.loads @ free.usages) / there,
        classes=tuple(ClassBound(name, *map(float, numbers)) for name, *numbers in classes),
        kkt_residual=free.residual,
        workload=workload,
        mean_cores=there,
        unrestricted=min(unrestricted, free.value),
    )
