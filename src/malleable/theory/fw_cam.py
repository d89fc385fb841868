"""FW-CAM's plan: a pool of cores for each class, cut into slots of one fixed width.

Widths k_i solve the relaxed problem with capacity n − n^β instead of n, 0.75 < β < 1, so that the effective
load tends to 1 slowly enough for queues to vanish. Class i gets n_i = n·r_i/Σr cores, r_i = load_i k_i/s_i,
as n_i' = ⌊n_i/k_i⌋ slots, and is from then on a GI/GI/n_i' queue of its own with service times X_i/s_i(k_i).

The repaired variant, for small n: at least one slot per class, and slots widened to n_i/n_i' so that no
floored-away core idles; any β in (0.5, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.errors import InfeasibleError, MalleableError, ParameterError, UnstableError
from malleable.model import Workload, checked_cores
from malleable.model.memoization import memoized
from malleable.theory.market import WhittleBuyers
from malleable.theory.queues import mgc_response_time
from malleable.theory.relaxed import least_cores, relax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.contracts import FloatArray

ROUNDING = 1e-9
"""A slot that fits up to rounding counts as one."""
BETAS = tuple(round(0.76 + 0.01 * i, 2) for i in range(24))
MOST_TRIES, ONE_BY_ONE = 32, 8


class Pool(NamedTuple):
    """The cores of one class: `slots` places of `width` cores each."""

    name: str
    width: float
    effective_load: float
    """r_i: cores in use on average."""
    cores: float
    """n_i: cores set aside."""
    slots: int
    utilisation: float
    """Share of the slots in use on average."""


@dataclass(frozen=True)
class FixedWidthPlan:
    """Who gets which slots under FW-CAM."""

    workload: Workload
    cores: float
    beta: float
    repaired: bool
    price: float
    pools: tuple[Pool, ...]

    @property
    def widths(self) -> FloatArray:
        """Cores of each slot, by class."""
        return np.array([pool.width for pool in self.pools])

    @property
    def slots(self) -> tuple[int, ...]:
        """Number of slots, by class."""
        return tuple(pool.slots for pool in self.pools)

    def response_times(self) -> FloatArray:
        """Exact mean response times: Erlang C or M/PH/c for each class (Poisson arrivals only)."""
        return np.array([self._response_time(i) for i in range(len(self.pools))])

    def _response_time(self, i: int) -> float:
        job_class, pool = self.workload.classes[i], self.pools[i]
        if not job_class.arrivals.poisson:
            raise ParameterError(
                f"class {pool.name!r} has {job_class.arrivals.kind} arrivals; the exact cost needs poisson",
                "simulate it instead",
            )
        speed = float(job_class.speedup(pool.width))
        return mgc_response_time(job_class.arrivals.rate, job_class.size, pool.slots, speed).response_time

    def waits(self) -> FloatArray:
        """Exact mean times that jobs wait for a slot."""
        service = self.workload.mean_sizes / _speeds(self.workload, self.widths)
        return np.maximum(self.response_times() - service, 0.0)

    def cost(self) -> float:
        """Exact mean holding cost per job, (1/λ) Σ λ_i c_i E[T_i]."""
        w = self.workload
        return float(w.rates @ (w.holding_costs * self.response_times())) / w.total_rate

    def described(self) -> dict[str, Any]:
        """The same with the waits and the cost; None, and the reason, where they are not known."""
        waits: list[float | None] = [None] * len(self.pools)
        cost, reason = None, ""
        try:
            waits, cost = list(map(float, self.waits())), self.cost()
        except MalleableError as error:
            reason = error.sentence
        document = self.to_dict()
        pools = [{**pool, "wait": wait} for pool, wait in zip(document["pools"], waits, strict=True)]
        return {**document, "pools": pools, "cost": cost, "reason": reason}

    def to_dict(self) -> dict[str, Any]:
        """The plan as a plain document."""
        return {
            "cores": self.cores,
            "beta": self.beta,
            "repaired": self.repaired,
            "price": self.price,
            "pools": [pool._asdict() for pool in self.pools],
        }


@memoized
def plan(
    workload: Workload, cores: float, beta: float = 0.8, *, repaired: bool = False, integer: bool = False
) -> FixedWidthPlan:
    """The slots of every class on `cores` cores; infeasible and unstable cases say what would work."""
    cores = checked_cores(cores)
    _check_beta(beta, repaired=repaired)
    try:
        return _plan(workload, cores, beta, repaired=repaired, integer=integer)
    except (InfeasibleError, UnstableError) as error:
        hint = _what_works(workload, cores, beta, repaired=repaired, integer=integer)
        raise type(error)(error.problem, hint) from None


def _check_beta(beta: float, *, repaired: bool) -> None:
    low = 0.5 if repaired else 0.75
    if not low < beta < 1.0:
        raise ParameterError(f"beta must lie between {low} and 1, got {beta:g}", path=("beta",))


def _plan(workload: Workload, cores: float, beta: float, *, repaired: bool, integer: bool) -> FixedWidthPlan:
    capacity = cores - cores**beta
    buyers = WhittleBuyers(workload.speedups, workload.holding_costs, integer=integer)
    needed = least_cores(workload, buyers)
    if capacity <= needed:
        raise InfeasibleError(
            f"fw-cam with beta={beta:g} plans for {capacity:.4g} of {cores:g} cores, "
            f"but work for {needed:.4g} arrives"
        )
    solution = relax(workload, buyers, capacity)
    widths = np.maximum(1.0, np.floor(solution.widths + ROUNDING)) if integer else solution.widths
    effective = workload.loads * widths / _speeds(workload, widths)
    shares = cores * effective / effective.sum()
    slots = np.floor(shares / widths + ROUNDING)
    if repaired:
        shares = _at_least_one(shares, cores, beta)
        slots = np.maximum(1.0, np.floor(shares / widths + ROUNDING))
        widths = np.minimum(shares / slots, [s.peak for s in workload.speedups])
        widths = np.maximum(1.0, np.floor(widths + ROUNDING)) if integer else widths
    busy = workload.loads / _speeds(workload, widths)
    for name, slot, use, share, width in zip(workload.class_names, slots, busy, shares, widths, strict=True):
        if slot <= use:
            raise UnstableError(
                f"fw-cam with beta={beta:g} gives class {name!r} {share:.4g} of {cores:g} cores, that is "
                f"{slot:g} slots of {width:.4g}, but needs more than {use:.4g} slots"
            )
    pools = (
        Pool(name, float(k), float(r), float(n), int(slot), float(use / slot))
        for name, k, r, n, slot, use in zip(
            workload.class_names, widths, effective, shares, slots, busy, strict=True
        )
    )
    return FixedWidthPlan(workload, cores, beta, repaired, solution.price, tuple(pools))


def _at_least_one(shares: FloatArray, cores: float, beta: float) -> FloatArray:
    """The same division of the cores, but one core at least for each class; the others give way."""
    fixed = np.zeros(len(shares), dtype=bool)
    while (small := ~fixed & (shares < 1.0)).any():
        fixed |= small
        rest = cores - fixed.sum()
        if rest < (~fixed).sum():
            raise InfeasibleError(
                f"fw-cam with beta={beta:g} needs a core for each of {len(shares)} classes, and has {cores:g}"
            )
        others = shares[~fixed]
        shares = np.where(fixed, 1.0, shares * rest / others.sum() if len(others) else 1.0)
    return shares


def _speeds(workload: Workload, widths: FloatArray) -> FloatArray:
    return np.array([float(s(k)) for s, k in zip(workload.speedups, widths, strict=True)])


def _what_works(workload: Workload, cores: float, beta: float, *, repaired: bool, integer: bool) -> str:
    """The nearest β that works here and the smallest larger n, at these rates and at this load."""

    def works(trial: Workload, n: float, exponent: float) -> bool:
        try:
            _plan(trial, n, exponent, repaired=repaired, integer=integer)
        except MalleableError:
            return False
        return True

    hints = []
    nearest = next((b for b in sorted(BETAS, key=lambda b: abs(b - beta)) if works(workload, cores, b)), None)
    if nearest is not None:
        hints.append(f"beta={nearest:g} works here")
    load = workload.load(cores)
    for name, at in (("these arrival rates", None), ("this load", load)):
        if at is not None and at >= 1.0:
            continue
        found = next((n for n in _larger(cores) if works(workload.at(n, at), n, beta)), None)
        if found is not None:
            hints.append(f"at {name} {found:g} cores do")
    return "; ".join(hints) or "use more cores, or a lower load"


def _larger(cores: float) -> Iterator[float]:
    """Numbers of cores to try: the next few one by one, then further and further apart."""
    n = np.floor(cores)
    for attempt in range(MOST_TRIES):
        n = n + 1.0 if attempt < ONE_BY_ONE else max(n + 1.0, np.floor(1.1 * n))
        yield float(n)
