"""The widths that jobs of each class may have, as gears: what the rules on restricted widths read.

Only vertices of the upper hull of the allowed (k, s(k)) are ever worth a price; these are a class's gears,
from its most efficient width (gear 0) up. A class of any width counts whole ones, or none (`real`).

    table[0]               number of classes m
    table[1]               where the gears end; speedups may stand behind
    table[2]               the price of the last decision (NaN: it had none)
    table[3]               whether jobs buy as WHAM's or as GREEDY's
    table[4], table[5]     whether weights grow with the cost of a job, and with 1/(work left)
    table[6]               a price near which the next search starts
    m rows of 8            gears, where they stand, weight per cost, pause, work lost, s(k)/k of gear 0,
                           allowed widths below gear 0, whether jobs keep the width that they start with
    per class              widths, and for each gear the price of the step to it, for weight 1; then the
                           widths below gear 0, which serve only jobs that would wait beside idle cores

The step to gear 0 has no price under WHAM (who is served is decided by the index), under GREEDY s(k)/k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import REMAINING, WEIGHT
from malleable.engine.width_table import PAUSE as LIMIT_PAUSE
from malleable.engine.width_table import WORK as LIMIT_WORK
from malleable.engine.width_table import encode_limits, limit
from malleable.numerics.hull import pricing_hull
from malleable.policies.rules.class_weights import class_rates, weight_unit
from malleable.policies.rules.market_groups import WHAM
from malleable.policies.rules.tolerances import DUST, TINY

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import JobType, Workload

CLASSES, END, PRICE, MODE, BY_COST, BY_SIZE, GUESS = range(7)
HEADER = 7
GEARS, START, RATE, PAUSE, LOST, INDEX, NARROWER, KEPT = range(8)
COLUMNS = 8


def gear_table(
    workload: Workload, cores: float, mode: int, weight: str = "c", *, real: bool = False
) -> FloatArray:
    """The table for weights 1, mu, c, cmu or c/x; with `real`, classes of any width have no gears."""
    limits = encode_limits(workload.job_types, cores)
    rows = np.zeros((len(workload.classes), COLUMNS))
    data: list[FloatArray] = []
    end = HEADER + rows.size
    for i, (row, one) in enumerate(zip(rows, workload.classes, strict=True)):
        k, s, prices = class_gears(one.job_type, cores)
        first = np.inf if mode == WHAM else s[0] / k[0]
        steps = prices if mode == WHAM else np.minimum.accumulate(np.diff(s) / np.diff(k))
        row[GEARS], row[START], row[INDEX] = len(k), end, s[0] / k[0]
        row[PAUSE], row[LOST] = limit(limits, i, LIMIT_PAUSE), limit(limits, i, LIMIT_WORK)
        row[KEPT] = float(one.shape == "moldable")
        if real and one.job_type.allowed_widths.unrestricted:
            row[GEARS] = 0.0
            continue
        below = usable_widths(one.job_type, cores)
        below = below[below < k[0]]
        row[NARROWER] = len(below)
        data += [k, np.concatenate([[first], steps]), below]
        end += 2 * len(k) + len(below)
    rows[:, RATE] = class_rates(workload, weight) / weight_unit(workload, weight)
    header = [len(rows), end, np.nan, mode, float("c" in weight), float(weight == "c/x"), 1.0]
    return np.concatenate([header, rows.ravel(), *data])


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
    return float(table[HEADER + COLUMNS * i + what])


def gear_width(table: FloatArray, i: int, gear: int) -> float:
    """The width of a gear; gear −1 is no cores at all."""
    return float(table[int(class_number(table, i, START)) + gear]) if gear >= 0 else 0.0


def narrow_width(table: FloatArray, i: int, cores: float) -> float:
    """The widest allowed width below gear 0 that fits into so many cores; 0 if there is none."""
    below = int(class_number(table, i, START)) + 2 * int(class_number(table, i, GEARS))
    found = 0.0
    for position in range(int(class_number(table, i, NARROWER))):
        if table[below + position] > cores + DUST:
            break
        found = float(table[below + position])
    return found


def step_price(table: FloatArray, i: int, gear: int) -> float:
    """The price below which a job of weight 1 prefers a gear to the one before; 0 beyond the last."""
    start, gears = int(class_number(table, i, START)), int(class_number(table, i, GEARS))
    return float(table[start + gears + gear]) if gear < gears else 0.0


def gear_at(table: FloatArray, i: int, price: float, weight: float) -> int:
    """The gear that a job of this weight chooses at this price."""
    start, gears = int(class_number(table, i, START)), int(class_number(table, i, GEARS))
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
    weight = float(jobs[j, WEIGHT]) if table[BY_COST] != 0.0 else 1.0
    weight *= class_number(table, i, RATE)
    return weight / max(float(jobs[j, REMAINING]), TINY) if table[BY_SIZE] != 0.0 else weight
