"""WHAM with a discounted premium as a rule on numbers: the procedure of `policies.wham_discounted`.

What a unit of a job's work is worth, and the cores that the job wants for it, is said in `discounted_demand`.
Jobs are served in the order of the index, as long as those before leave a job its k_e cores at the price of
its own index. On few cores per job may well drive up the price by itself, and when it is done its cores are
worth less. So, for this question, the work of those before is worth w at no more than the price that WHAM
would have without them. The cores are then shared at one price among those who are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.policies.rules.discounted_clearing import TIGHTER, widen
from malleable.policies.rules.discounted_demand import (
    AFTER,
    ARM_LINES,
    COST,
    DISCOUNT,
    FAIR,
    INDEX,
    KIND,
    PAYS,
    PRICE,
    QUOTE_LINES,
    QUOTED,
    SPAN,
    SPARE,
    WIDTH,
    WISH,
    forget_quotes,
    own_numbers,
    quote,
    total_demand,
)
from malleable.policies.rules.discounted_index import by_index, mark_worthy
from malleable.policies.rules.market_clearing import clear_groups
from malleable.policies.rules.market_groups import (
    COUNT,
    GROUP_CLASS,
    LEAST,
    LEAST_SPEED,
    LINES,
    WHAM,
    class_row,
    group_jobs,
)
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST, PROHIBITIVE, TINY
from malleable.policies.rules.wham_job_rules import wham_jobs_rule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

MANY = 64
"""With more groups of jobs than this no single one moves the price enough to be asked without it."""


def discounted_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM if its price is at most l*; otherwise cores by what work is worth when the premium has shrunk."""
    size, own = jobs.shape[0], own_numbers(table)
    discount = float(table[own + DISCOUNT])
    arms, quotes = np.empty((ARM_LINES, size)), np.empty((QUOTE_LINES, int(table[0])))
    need, wish = _enter(jobs, table, arms, quotes)
    if discount <= 0.0 or wish <= cores:
        wham_jobs_rule(jobs, cores, table, out)
        return
    if need > cores - 1.0 + DUST:
        discount /= 1.0 + discount * _waiting(jobs, cores - 1.0, table) / float(table[own + SPARE])
    queue = np.empty(size, np.int64)
    for j in range(size):
        out[j], queue[j] = 0.0, j
        arms[SPAN, j], arms[INDEX, j] = discount * max(float(jobs[j, REMAINING]), 0.0), 0.0
    served = 0
    if need <= cores + DUST:
        price = widen(table, arms, quotes, queue, size, cores)
        served = mark_worthy(table, arms, quotes, price)
    if served < size:
        _look_after(jobs, table, arms, need, cores)
        queue = by_index(table, arms, quotes)
        served = _served(table, arms, quotes, queue, served, cores)
        if served < size and _part_for_next(table, arms, quotes, queue, served, cores):
            served += 1
        else:
            widen(table, arms, quotes, queue, served, cores)
    for position in range(served):
        out[queue[position]] = arms[WIDTH, queue[position]]


def _enter(jobs: FloatArray, table: FloatArray, arms: FloatArray, quotes: FloatArray) -> tuple[float, float]:
    """Note class, c and φ(l*) of each job; the cores for all least widths, and for what all want at l*."""
    price = float(table[own_numbers(table) + PRICE])
    forget_quotes(quotes)
    need = wish = 0.0
    for j in range(jobs.shape[0]):
        i, c = int(jobs[j, CLASS]), float(jobs[j, WEIGHT])
        if quotes[QUOTED, i] != c:
            quote(table, quotes, i, c, price, PROHIBITIVE)
        arms[KIND, j], arms[COST, j], arms[FAIR, j] = i, c, quotes[PAYS, i]
        need += table[class_row(table, i) + LEAST]
        wish += quotes[WISH, i]
    return need, wish


def _waiting(jobs: FloatArray, cores: float, table: FloatArray) -> float:
    """Core-time that the jobs need for whom WHAM would have none of so many cores."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        row = class_row(table, int(jobs[j, CLASS]))
        gain = float(jobs[j, WEIGHT]) * table[row + LEAST_SPEED] / table[row + LEAST]
        keys[j] = -gain / max(float(jobs[j, REMAINING]), TINY)
    order = ascending(keys)
    free, waiting = cores, 0.0
    for position in range(size):
        j = order[position]
        row = class_row(table, int(jobs[j, CLASS]))
        free -= table[row + LEAST]
        if free < -DUST:
            left_out = min(-free / table[row + LEAST], 1.0)
            waiting += left_out * jobs[j, REMAINING] * table[row + LEAST] / table[row + LEAST_SPEED]
    return waiting


def _look_after(jobs: FloatArray, table: FloatArray, arms: FloatArray, need: float, cores: float) -> None:
    """The price that WHAM would have without the job, into AFTER: at least l*, the highest in overload."""
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue, unused = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    groups = group_jobs(jobs, table, market, member, queue, unused)
    prices = np.full(groups, PROHIBITIVE)
    for g in range(groups if groups <= MANY else 0):
        rest = need - table[class_row(table, int(market[GROUP_CLASS, g])) + LEAST]
        if market[COUNT, g] > 0.0 and rest < cores - DUST:
            market[COUNT, g] -= 1.0
            prices[g] = clear_groups(table, market, groups, cores, TIGHTER * cores, WHAM)
            market[COUNT, g] += 1.0
    for j in range(size):
        arms[AFTER, j] = max(prices[member[j]], float(table[own_numbers(table) + PRICE]))


def _served(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, few: int, cores: float
) -> int:
    """The longest prefix whose last job is left its least width by the others, at the price of its index."""
    fit, used = 0, 0.0
    while fit < queue.shape[0]:
        used += table[class_row(table, int(arms[KIND, queue[fit]])) + LEAST]
        if used > cores + DUST:
            break
        fit += 1
    many = max(fit, few) + 1
    trial = many - 1
    while many - few > 1:
        j = queue[trial - 1]
        least = table[class_row(table, int(arms[KIND, j])) + LEAST]
        wanted = total_demand(table, arms, quotes, queue, trial - 1, float(arms[INDEX, j]), True)
        if wanted + least <= cores + DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    return few


def _part_for_next(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, served: int, cores: float
) -> bool:
    """Leave the first job left out a part of its least width, if that is one core or more."""
    following = queue[served]
    spare = cores - total_demand(table, arms, quotes, queue, served, float(arms[INDEX, following]), False)
    arms[WIDTH, following] = min(spare, float(table[class_row(table, int(arms[KIND, following])) + LEAST]))
    return spare >= 1.0
