"""WHAM with a discounted premium as a rule on numbers: the procedure of `policies.wham_discounted`.

What a unit of a job's work is worth, and the cores that the job wants for it, is said in `discounted_market`.
Jobs are served in the order of the index, as long as those before leave a job its k_e cores at the price of
its own index. On few cores per job may well drive up the price by itself, and when it is done its cores are
worth less. So, for this question, the work of those before is worth w at no more than the price that WHAM
would have without them. The cores are then shared at one price among those who are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.policies.rules.class_rules import WHAM
from malleable.policies.rules.discounted_market import (
    ARM,
    DISCOUNTED,
    QUOTE,
    by_index,
    forget_quotes,
    mark_worthy,
    quote,
    total_demand,
    widen,
)
from malleable.policies.rules.market import (
    GROUP,
    WIDTHS,
    class_row,
    clear_groups,
    end_of_market,
    group_jobs,
)
from malleable.policies.rules.market_rules import wham_jobs_rule
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST, TIGHT, TINY
from malleable.theory.market import PROHIBITIVE

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray

MANY = 64
"""With more groups of jobs than this no single one moves the price enough to be asked without it."""


def discounted_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM if its price is at most l*; otherwise cores by what work is worth when the premium has shrunk."""
    size, own = jobs.shape[0], end_of_market(table)
    discount = float(table[own + DISCOUNTED.DISCOUNT])
    arms, quotes = np.empty((len(ARM), size)), np.empty((len(QUOTE), int(table[0])))
    need, wish = _enter(jobs, table, arms, quotes)
    if discount <= 0.0 or wish <= cores:
        wham_jobs_rule(jobs, cores, table, out)
        return
    if need > cores - 1.0 + DUST:
        discount /= 1.0 + discount * _waiting(jobs, cores - 1.0, table) / float(table[own + DISCOUNTED.SPARE])
    queue = np.empty(size, np.int64)
    for j in range(size):
        out[j], queue[j] = 0.0, j
        arms[ARM.SPAN, j], arms[ARM.INDEX, j] = discount * max(float(jobs[j, REMAINING]), 0.0), 0.0
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
        out[queue[position]] = arms[ARM.WIDTH, queue[position]]


def _enter(jobs: FloatArray, table: FloatArray, arms: FloatArray, quotes: FloatArray) -> tuple[float, float]:
    """Note class, c and φ(l*) of each job; the cores for all least widths, and for what all want at l*."""
    price = float(table[end_of_market(table) + DISCOUNTED.PRICE])
    forget_quotes(quotes)
    need = wish = 0.0
    for j in range(jobs.shape[0]):
        i, c = int(jobs[j, CLASS]), float(jobs[j, WEIGHT])
        if quotes[QUOTE.COST, i] != c:
            quote(table, quotes, i, c, price, PROHIBITIVE)
        arms[ARM.CLASS, j], arms[ARM.COST, j], arms[ARM.FAIR, j] = i, c, quotes[QUOTE.PAYS, i]
        need += table[class_row(table, i) + WIDTHS.LEAST]
        wish += quotes[QUOTE.WISH, i]
    return need, wish


def _waiting(jobs: FloatArray, cores: float, table: FloatArray) -> float:
    """Core-time that the jobs need for whom WHAM would have none of so many cores."""
    size = jobs.shape[0]
    keys = np.empty(size)
    for j in range(size):
        row = class_row(table, int(jobs[j, CLASS]))
        gain = float(jobs[j, WEIGHT]) * table[row + WIDTHS.LEAST_SPEED] / table[row + WIDTHS.LEAST]
        keys[j] = -gain / max(float(jobs[j, REMAINING]), TINY)
    order = ascending(keys)
    free, waiting = cores, 0.0
    for position in range(size):
        j = order[position]
        row = class_row(table, int(jobs[j, CLASS]))
        free -= table[row + WIDTHS.LEAST]
        if free < -DUST:
            left_out = min(-free / table[row + WIDTHS.LEAST], 1.0)
            waiting += (
                left_out * jobs[j, REMAINING] * table[row + WIDTHS.LEAST] / table[row + WIDTHS.LEAST_SPEED]
            )
    return waiting


def _look_after(jobs: FloatArray, table: FloatArray, arms: FloatArray, need: float, cores: float) -> None:
    """The price that WHAM would have without the job, into AFTER: at least l*, the highest in overload."""
    size = jobs.shape[0]
    market = np.empty((len(GROUP), max(size, int(table[0]))))
    member, queue, unused = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    groups = group_jobs(jobs, table, market, member, queue, unused)
    prices = np.full(groups, PROHIBITIVE)
    for g in range(groups if groups <= MANY else 0):
        rest = need - table[class_row(table, int(market[GROUP.CLASS, g])) + WIDTHS.LEAST]
        if market[GROUP.COUNT, g] > 0.0 and rest < cores - DUST:
            market[GROUP.COUNT, g] -= 1.0
            prices[g] = clear_groups(table, market, groups, cores, TIGHT * cores, WHAM)
            market[GROUP.COUNT, g] += 1.0
    for j in range(size):
        arms[ARM.AFTER, j] = max(prices[member[j]], float(table[end_of_market(table) + DISCOUNTED.PRICE]))


def _served(
    table: FloatArray, arms: FloatArray, quotes: FloatArray, queue: IntArray, few: int, cores: float
) -> int:
    """The longest prefix whose last job is left its least width by the others, at the price of its index."""
    fit, used = 0, 0.0
    while fit < queue.shape[0]:
        used += table[class_row(table, int(arms[ARM.CLASS, queue[fit]])) + WIDTHS.LEAST]
        if used > cores + DUST:
            break
        fit += 1
    many = max(fit, few) + 1
    trial = many - 1
    while many - few > 1:
        j = queue[trial - 1]
        least = table[class_row(table, int(arms[ARM.CLASS, j])) + WIDTHS.LEAST]
        wanted = total_demand(table, arms, quotes, queue, trial - 1, float(arms[ARM.INDEX, j]), True)
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
    spare = cores - total_demand(table, arms, quotes, queue, served, float(arms[ARM.INDEX, following]), False)
    arms[ARM.WIDTH, following] = min(
        spare, float(table[class_row(table, int(arms[ARM.CLASS, following])) + WIDTHS.LEAST])
    )
    return spare >= 1.0
