"""GREEDY's optimum on whole cores where speedups have dents, which steps in order of their value may miss.

A multiple-choice knapsack: maximise Σ_j v_j(k_j) over whole k_j ≥ 0 with Σ k_j ≤ n. Steps in order of their
value are optimal when every v is concave; a dent may make them miss the optimum. For any price l

    Σ_j v_j(k_j) = D(l) − Σ_j r_j(k_j) − l·(n − Σ_j k_j),    D(l) = Σ_j max_k (v_j(k) − l·k) + l·n,

where r_j(k) ≥ 0 is what a job loses on width k at that price. At the price at which the hulls of v share the
cores, every job has a width without loss, the *base*, and less than one edge is left over. What a known
division lacks to D bounds the loss of a better one, so that few widths are left for each job. And jobs whose
changes from the base cancel may as well stay: at most 2Δ − 1 jobs leave it, Δ being the largest change (the
proximity of Eisenbrand and Weismantel, 2018). A dynamic program over the change in cores does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.rule_interface import AGE, CLASS, REMAINING
from malleable.engine.speedup_table import speed
from malleable.numerics.hull import upper_hull
from malleable.policies.rules.market import WIDTHS, class_row, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from malleable.contracts import FloatArray
    from malleable.engine.rule_interface import Moment
    from malleable.model.jobs import IntArray

ROUNDING = 1e-12
"""Relative gain that is none."""
MOST_VALUES = 2e5
"""Speeds that may be tabulated to improve on the steps."""
MOST_WORK = 4 * 10**7
"""Sums in the dynamic program, beyond which the division at hand has to do."""


def improved_whole(moment: Moment) -> FloatArray:
    """Whole cores that maximise Σ w·s(k), where dents keep steps from it; the earliest have the widest."""
    jobs, table, found, cores = moment.rows, moment.table, moment.widths, moment.cores
    rows = [class_row(table, i) for i in range(int(table[0]))]
    twin_of = {int(i): int(table[rows[int(i)] + WIDTHS.TWIN]) for i in np.unique(jobs[:, CLASS])}
    if all(table[rows[i] + WIDTHS.CONCAVE] for i in twin_of.values()):
        return found
    twins = [twin_of[int(i)] for i in jobs[:, CLASS]]
    sets: dict[tuple[int, float], list[int]] = {}
    for j in np.lexsort((jobs[:, REMAINING], -jobs[:, AGE])).tolist():
        sets.setdefault((twins[j], weight_of(jobs, table, j, twins[j])), []).append(j)
    limits = {i: int(min(float(table[rows[i] + WIDTHS.MOST]), cores)) for i in twins}
    if sum(limits[i] for i, _ in sets) > MOST_VALUES:
        return found
    speeds = {i: np.array([speed(table, i, float(k)) for k in range(limits[i] + 1)]) for i in limits}
    values = [weight * speeds[i] for i, weight in sets]
    counts = np.array([len(members) for members in sets.values()])
    given = [found[members].astype(np.int64) for members in sets.values()]
    widths = best_widths(values, counts, int(cores), given)
    if widths is None:
        return found
    out = np.zeros(len(jobs))
    for members, own in zip(sets.values(), widths, strict=True):
        out[members] = own
    return out


class Kind(NamedTuple):
    """Jobs of a group that have the same base, and the changes of width that are worth a look."""

    group: int
    base: int
    jobs: int
    changes: IntArray
    losses: FloatArray


def best_widths(
    values: Sequence[FloatArray], counts: IntArray, cores: int, given: Sequence[IntArray]
) -> list[IntArray] | None:
    """Widths for the jobs of each group, widest first, that beat those `given`; None where none are found.

    `values[g][k]` is what a job of group g is worth on k cores, k = 0, 1, …; `given[g]` lists widths.
    """
    price, bases = _bases(values, counts, cores)
    margins = [v - price * np.arange(len(v)) for v in values]
    tops = np.array([margin.max() for margin in margins])
    worth = float(sum(v[k].sum() for v, k in zip(values, given, strict=True)))
    gap = float(counts @ tops) + price * cores - worth
    if gap <= ROUNDING * worth:
        return None
    kinds = []
    for group, base, count in bases:
        losses = tops[group] - margins[group]
        near = np.flatnonzero(losses < gap)
        near = near[near != base]
        kinds.append(Kind(group, base, count, near - base, losses[near]))
    spare = cores - sum(kind.base * kind.jobs for kind in kinds)
    found = _least_loss(kinds, spare, price, gap - ROUNDING * worth)
    if found is None:
        return None
    widths: list[list[int]] = [[] for _ in values]
    for kind, changes in zip(kinds, found, strict=True):
        widths[kind.group] += [kind.base + change for change in changes]
        widths[kind.group] += [kind.base] * (kind.jobs - len(changes))
    return [np.sort(np.array(k, dtype=np.int64))[::-1] for k in widths]


def _bases(
    values: Sequence[FloatArray], counts: IntArray, cores: int
) -> tuple[float, list[tuple[int, int, int]]]:
    """The price at which the hulls share the cores, and (group, width, jobs) of those on vertices there."""
    hulls = [upper_hull(np.arange(len(v), dtype=float), v) for v in values]
    edges = sorted(_edges(hulls), key=lambda edge: (-edge[0], *edge[1:]))
    widths, left = [0] * len(values), cores
    for slope, group, low, high in edges:
        width = high - low
        if slope <= 0.0:
            break
        raised = min(int(counts[group]), left // width)
        left -= raised * width
        if raised == counts[group]:
            widths[group] = high
            continue
        divided = [(group, high, raised), (group, low, int(counts[group]) - raised)]
        others = [(g, k, int(counts[g])) for g, k in enumerate(widths) if g != group]
        return slope, [*divided, *others]
    return 0.0, [(g, k, int(counts[g])) for g, k in enumerate(widths)]


def _edges(hulls: Sequence[tuple[FloatArray, FloatArray]]) -> Iterator[tuple[float, int, int, int]]:
    for group, (k, v) in enumerate(hulls):
        slopes = np.minimum.accumulate(np.diff(v) / np.diff(k))
        for slope, low, high in zip(slopes.tolist(), k[:-1].tolist(), k[1:].tolist(), strict=True):
            yield slope, group, int(low), int(high)


def _least_loss(kinds: Sequence[Kind], spare: int, price: float, limit: float) -> list[list[int]] | None:
    """The changes of some jobs of each kind with the least loss, idle cores included, if below the limit."""
    largest = max((int(np.abs(kind.changes).max()) for kind in kinds if len(kind.changes)), default=0)
    flexible = [min(kind.jobs, max(2 * largest - 1, 0)) if len(kind.changes) else 0 for kind in kinds]
    farthest = largest * (2 * largest - 1)
    down = sum(f * -min(int(kind.changes.min()), 0) for f, kind in zip(flexible, kinds, strict=True) if f)
    up = sum(f * max(int(kind.changes.max()), 0) for f, kind in zip(flexible, kinds, strict=True) if f)
    low, high = -min(farthest, down), min(farthest, up)
    size = high - low + 1
    if size * sum(f * (1 + len(kind.changes)) for f, kind in zip(flexible, kinds, strict=True)) > MOST_WORK:
        return None
    loss = np.full(size, np.inf)
    loss[-low] = 0.0
    choices: list[tuple[Kind, IntArray]] = []
    for kind, copies in zip(kinds, flexible, strict=True):
        for _ in range(copies):
            loss, choice = _with_job(loss, kind)
            choices.append((kind, choice))
    offsets = np.arange(low, high + 1)
    total = np.where(offsets <= spare, loss + price * (spare - offsets), np.inf)
    at = int(np.argmin(total))
    if not total[at] < limit:
        return None
    changes: dict[int, list[int]] = {}
    for kind, choice in reversed(choices):
        picked = int(choice[at])
        change = int(kind.changes[picked - 1]) if picked else 0
        changes.setdefault(id(kind), []).append(change)
        at -= change
    return [changes.get(id(kind), []) for kind in kinds]


def _with_job(loss: FloatArray, kind: Kind) -> tuple[FloatArray, IntArray]:
    """The least loss for each change in cores with one more job, and which of its changes it takes."""
    best, choice = loss.copy(), np.zeros(len(loss), dtype=np.int64)
    for picked, (change, own) in enumerate(zip(kind.changes.tolist(), kind.losses.tolist(), strict=True), 1):
        if abs(change) >= len(loss):
            continue
        before, after = (
            (loss[:-change], slice(change, None)) if change > 0 else (loss[-change:], slice(change))
        )
        better = before + own < best[after]
        best[after] = np.where(better, before + own, best[after])
        choice[after] = np.where(better, picked, choice[after])
    return best, choice
