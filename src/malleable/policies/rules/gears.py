"""WHAM and GREEDY where widths are restricted: the multi-gear index rule.

Only vertices of the upper hull of the allowed (k, s(k)) are ever worth a price; these are a class's *gears*,
from its most efficient width (gear 0) up. A class of any width counts whole ones, or none (`real`). Every
step from one gear to the next has a price (Whittle's index of that step, or the gain in speed per core).
Steps are taken from the highest price down while they fit; one that does not fit is passed over, so a cheaper
step of another job may take its place. WHAM first gives gear 0 to all jobs; where they do not fit together,
to those with the highest c·s(k)/(k·x), and passes over those that do not fit. What this division lacks of the
best collected index is less than the largest step that was passed over (measured in the tests). Where cores
are left over for which a job waits, it runs on the widest allowed width that fits: no machine is idle because
a job would rather have more.

A table has the numbers of `GearTable`, a row of `Gear` for each class, and for each class the widths of its
gears, the price of the step to each, for weight 1, and the widths below gear 0, which serve only jobs that
would wait beside idle cores. The step to gear 0 has no price under WHAM (who is served is decided by the
index), under GREEDY s(k)/k. Other rules may have more numbers behind.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.engine.width_table import LIMIT, encode_limits, limit
from malleable.numerics.hull import pricing_hull
from malleable.numerics.places import places
from malleable.policies.rules.class_rules import WHAM
from malleable.policies.rules.market import class_rates, weight_unit
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import lowest_price
from malleable.policies.rules.tolerances import DUST, TINY

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray
    from malleable.model import JobType, Workload

CLOSE = 1e-14
"""Relative distance of two prices between which no step lies but by rounding."""
NOTHING = 1e-300
"""A price below all that steps have."""


class GearTable(NamedTuple):
    """What a table starts with."""

    CLASSES: int
    END: int
    """Where the gears end."""
    PRICE: int
    """The price of the last decision (NaN: it had none)."""
    MODE: int
    """Whether jobs buy as WHAM's or as GREEDY's."""
    BY_COST: int
    BY_SIZE: int
    """Whether weights grow with the cost of a job, and with 1/(work left)."""
    GUESS: int
    """A price near which a search may start."""


class Gear(NamedTuple):
    """The columns of a class."""

    COUNT: int
    START: int
    """How many gears it has (0: any width), and where they stand."""
    RATE: int
    """Weight per cost."""
    PAUSE: int
    LOST: int
    """Pause and work lost by a resize."""
    INDEX: int
    """s(k)/k of gear 0."""
    NARROWER: int
    """Allowed widths below gear 0."""
    KEPT: int
    """Whether jobs keep the width that they start with."""


GEAR_TABLE, GEAR = places(GearTable), places(Gear)


def gear_table(
    workload: Workload, cores: float, mode: int, weight: str = "c", *, real: bool = False
) -> FloatArray:
    """The table for weights 1, mu, c, cmu or c/x; with `real`, classes of any width have no gears."""
    limits = encode_limits(workload.job_types, cores)
    rows = np.zeros((len(workload.classes), len(GEAR)))
    data: list[FloatArray] = []
    end = len(GEAR_TABLE) + rows.size
    for i, (row, one) in enumerate(zip(rows, workload.classes, strict=True)):
        k, s, prices = class_gears(one.job_type, cores)
        first = np.inf if mode == WHAM else s[0] / k[0]
        steps = prices if mode == WHAM else np.minimum.accumulate(np.diff(s) / np.diff(k))
        row[GEAR.COUNT], row[GEAR.START], row[GEAR.INDEX] = len(k), end, s[0] / k[0]
        row[GEAR.PAUSE], row[GEAR.LOST] = limit(limits, i, LIMIT.PAUSE), limit(limits, i, LIMIT.WORK)
        row[GEAR.KEPT] = float(one.shape == "moldable")
        if real and one.job_type.allowed_widths.unrestricted:
            row[GEAR.COUNT] = 0.0
            continue
        below = usable_widths(one.job_type, cores)
        below = below[below < k[0]]
        row[GEAR.NARROWER] = len(below)
        data += [k, np.concatenate([[first], steps]), below]
        end += 2 * len(k) + len(below)
    rows[:, GEAR.RATE] = class_rates(workload, weight) / weight_unit(workload, weight)
    own = np.zeros(len(GEAR_TABLE))
    own[GEAR_TABLE.CLASSES], own[GEAR_TABLE.END], own[GEAR_TABLE.MODE] = len(rows), end, mode
    own[GEAR_TABLE.BY_COST], own[GEAR_TABLE.BY_SIZE] = "c" in weight, weight == "c/x"
    own[GEAR_TABLE.PRICE], own[GEAR_TABLE.GUESS] = np.nan, 1.0
    return np.concatenate([own, rows.ravel(), *data])


def usable_widths(job_type: JobType, cores: float) -> FloatArray:
    """The allowed widths, of which a class of any width has the whole ones."""
    allowed = job_type.widths_on(cores)
    return np.arange(1.0, np.floor(cores + DUST) + 1.0) if allowed is None else allowed


def class_gears(job_type: JobType, cores: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Widths and speeds of the gears, and the price of each step between them for weight 1."""
    k = usable_widths(job_type, cores)
    hull = pricing_hull(k, np.maximum.accumulate(np.asarray(job_type.speedup(k), dtype=float)))
    return hull.widths, hull.speeds, np.minimum.accumulate(hull.prices)


def class_number(table: FloatArray, i: int, what: int) -> float:
    """One number of class i."""
    return float(table[len(GEAR_TABLE) + len(GEAR) * i + what])


def gear_width(table: FloatArray, i: int, gear: int) -> float:
    """The width of a gear; gear −1 is no cores at all."""
    return float(table[int(class_number(table, i, GEAR.START)) + gear]) if gear >= 0 else 0.0


def narrow_width(table: FloatArray, i: int, cores: float) -> float:
    """The widest allowed width below gear 0 that fits into so many cores; 0 if there is none."""
    below = int(class_number(table, i, GEAR.START)) + 2 * int(class_number(table, i, GEAR.COUNT))
    found = 0.0
    for position in range(int(class_number(table, i, GEAR.NARROWER))):
        if table[below + position] > cores + DUST:
            break
        found = float(table[below + position])
    return found


def step_price(table: FloatArray, i: int, gear: int) -> float:
    """The price below which a job of weight 1 prefers a gear to the one before; 0 beyond the last."""
    start, gears = int(class_number(table, i, GEAR.START)), int(class_number(table, i, GEAR.COUNT))
    return float(table[start + gears + gear]) if gear < gears else 0.0


def gear_at(table: FloatArray, i: int, price: float, weight: float) -> int:
    """The gear that a job of this weight chooses at this price."""
    start, gears = int(class_number(table, i, GEAR.START)), int(class_number(table, i, GEAR.COUNT))
    low, high = 0, gears
    while low < high:
        middle = (low + high) // 2
        if table[start + gears + middle] * weight > price:
            low = middle + 1
        else:
            high = middle
    return low - 1


def job_weight(jobs: FloatArray, j: int, i: int, table: FloatArray) -> float:
    """What job j, of class i, weighs in the market."""
    weight = float(jobs[j, WEIGHT]) if table[GEAR_TABLE.BY_COST] != 0.0 else 1.0
    weight *= class_number(table, i, GEAR.RATE)
    return weight / max(float(jobs[j, REMAINING]), TINY) if table[GEAR_TABLE.BY_SIZE] != 0.0 else weight


def gear_price(rows: FloatArray, table: FloatArray, out: FloatArray) -> float | None:  # noqa: ARG001
    """The price of the last decision; None where jobs wait in line."""
    return None if math.isnan(table[GEAR_TABLE.PRICE]) else float(table[GEAR_TABLE.PRICE])


def gear_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Steps between gears in order of their price, as long as they fit."""
    size, whole = jobs.shape[0], float(math.floor(cores + DUST))
    kinds, weights = np.empty(size, np.int64), np.empty(size)
    gears, served = np.full(size, -1, np.int64), np.ones(size, np.bool_)
    for j in range(size):
        kinds[j] = int(jobs[j, CLASS])
        weights[j] = job_weight(jobs, j, kinds[j], table)
    keys = serving_order(jobs, kinds, weights, table)
    full = table[GEAR_TABLE.MODE] == WHAM and not admit(kinds, keys, whole, table, served, out)
    spare = whole
    for j in range(size):
        if full and not served[j]:
            spare -= out[j]
    low, high = bracket(kinds, weights, served, spare, table)
    for j in range(size):
        if served[j]:
            gears[j] = gear_at(table, kinds[j], high, weights[j])
            spare -= gear_width(table, kinds[j], gears[j])
    spare = take_steps(kinds, weights, served, gears, spare, low, table)
    for j in range(size):
        if served[j]:
            out[j] = gear_width(table, kinds[j], gears[j])
    if table[GEAR_TABLE.MODE] != WHAM:
        serve_narrowly(kinds, keys, spare, table, out)
    table[GEAR_TABLE.PRICE] = np.nan if full else high


def serving_order(jobs: FloatArray, kinds: IntArray, weights: FloatArray, table: FloatArray) -> FloatArray:
    """What jobs are served by when not all can be, least first: the index of gear 0, or its price."""
    size = kinds.shape[0]
    keys = np.empty(size)
    for j in range(size):
        left = float(jobs[j, REMAINING]) if table[GEAR_TABLE.MODE] == WHAM else 1.0
        value = weights[j] * class_number(table, kinds[j], GEAR.INDEX)
        keys[j] = -value / left if left > 0.0 else -math.inf
    return keys


def admit(
    kinds: IntArray, keys: FloatArray, whole: float, table: FloatArray, served: BoolArray, out: FloatArray
) -> bool:
    """Whether gear 0 of all jobs fits; if not, mark those that are served: by index, while they fit."""
    size, need = kinds.shape[0], 0.0
    for j in range(size):
        need += gear_width(table, kinds[j], 0)
        out[j] = 0.0
    if need <= whole + DUST:
        return True
    for j in ascending(keys):
        out[j] = gear_width(table, kinds[j], 0)
        served[j] = out[j] <= whole + DUST
        if served[j]:
            whole -= out[j]
        else:
            out[j] = 0.0
    serve_narrowly(kinds, keys, whole, table, out)
    return False


def serve_narrowly(
    kinds: IntArray, keys: FloatArray, spare: float, table: FloatArray, out: FloatArray
) -> None:
    """Let jobs that have no cores run on what is left over, in order, below their gear 0."""
    if spare < 1.0 - DUST:
        return
    for j in ascending(keys):
        if out[j] == 0.0:
            out[j] = narrow_width(table, kinds[j], spare)
            spare -= out[j]


def bracket(
    kinds: IntArray, weights: FloatArray, served: BoolArray, whole: float, table: FloatArray
) -> tuple[float, float]:
    """Two neighbouring prices: at the lower one the served want more than there is, at the higher not."""
    market, high = (kinds, weights, served, whole, table), 0.0
    for j in range(kinds.shape[0]):
        if served[j]:
            first = 1 if table[GEAR_TABLE.MODE] == WHAM else 0
            high = max(high, weights[j] * step_price(table, kinds[j], first))
    if high == 0.0 or _fits(market, 0.0):
        return 0.0, 0.0
    last = float(table[GEAR_TABLE.PRICE])
    return _lowest_price(market, last if 0.0 < last < high else high, NOTHING, high, CLOSE)


def _fits(market: Any, price: float) -> bool:
    """Whether there are the cores that the served jobs want at a price."""
    kinds, weights, served, whole, table = market
    total = 0.0
    for j in range(kinds.shape[0]):
        if served[j]:
            total += gear_width(table, kinds[j], gear_at(table, kinds[j], price, weights[j]))
    return bool(total <= whole + DUST)


_lowest_price = lowest_price(_fits)


def take_steps(
    kinds: IntArray,
    weights: FloatArray,
    served: BoolArray,
    gears: IntArray,
    spare: float,
    price: float,
    table: FloatArray,
) -> float:
    """Spend what is left: steps of the clearing price in order of arrival, then the dearest that fits."""
    size = kinds.shape[0]
    for j in range(size):
        if served[j] and weights[j] * step_price(table, kinds[j], gears[j] + 1) >= price > 0.0:
            spare = step(kinds[j], gears, j, spare, table)
    while spare >= 1.0 - DUST:
        best, value = -1, 0.0
        for j in range(size):
            if served[j] and int(gears[j]) + 1 < int(class_number(table, kinds[j], GEAR.COUNT)):
                i, gear = int(kinds[j]), int(gears[j])
                need = gear_width(table, i, gear + 1) - gear_width(table, i, gear)
                own = weights[j] * step_price(table, i, gear + 1)
                if need <= spare + DUST and own > value:
                    best, value = j, own
        if best < 0:
            break
        spare = step(kinds[best], gears, best, spare, table)
    return spare


def step(i: int, gears: IntArray, j: int, spare: float, table: FloatArray) -> float:
    """Let job j, of class i, have its next gear if it fits; what is left."""
    need = gear_width(table, i, gears[j] + 1) - gear_width(table, i, gears[j])
    if need <= spare + DUST:
        gears[j] += 1
        return spare - need
    return spare
