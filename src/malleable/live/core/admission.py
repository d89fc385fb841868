"""Which jobs may be given cores: those whose memory fits, few enough to start, and who must not be paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.live.core.job_table import ARRIVED, CLASS, MEMORY, NEVER_PAUSE, STARTED, WEIGHT, JobTable

if TYPE_CHECKING:
    from malleable.contracts import BoolArray, FloatArray, IntArray


def fits_in_memory(table: JobTable, rows: IntArray, memory: float) -> BoolArray:
    """Jobs that have started, and those that fit beside them.

    A job keeps its memory from its start to its end. The first in order of arrival that does not fit holds
    back those behind it that need memory, so that small jobs never keep a large one waiting for ever.
    """
    needs, started = table[MEMORY][rows], table[STARTED][rows] > 0.0
    allowed = started | (needs == 0.0)
    waiting = np.flatnonzero(~allowed)
    if len(waiting):
        waiting = waiting[np.argsort(table[ARRIVED][rows[waiting]], kind="stable")]
        within = np.cumsum(needs[waiting]) <= memory - needs[started].sum()
        allowed[waiting[np.logical_and.accumulate(within)]] = True
    return np.asarray(allowed)


def few_enough_paused(
    table: JobTable, rows: IntArray, cores: FloatArray, limit: float, most_started: float
) -> BoolArray | None:
    """Who may be given cores, where a division would leave more than `limit` started jobs without any.

    Those are all that have started and, up to `most_started` in all, others that the division would start:
    the heaviest, and of these the earliest. None where all is well, or the division starts no job.
    """
    started = table[STARTED][rows] > 0.0
    newcomers = np.flatnonzero(~started & (cores > 0.0))
    if len(newcomers) == 0 or (started & (cores == 0.0)).sum() <= limit:
        return None
    room = int(max(0.0, most_started - started.sum()))
    heaviest = np.argsort(-table[WEIGHT][rows[newcomers]], kind="stable")[:room]
    allowed = started
    allowed[newcomers[heaviest]] = True
    return np.asarray(allowed)


def protected(table: JobTable, rows: IntArray, least: FloatArray, cores: float) -> BoolArray:
    """Started jobs that must keep their narrowest width; the earliest, where cores do not suffice for all.

    `least` has the narrowest width of each class.
    """
    marked = (table[NEVER_PAUSE][rows] > 0.0) & (table[STARTED][rows] > 0.0)
    if marked.any():
        mine = np.flatnonzero(marked)
        mine = mine[np.argsort(table[ARRIVED][rows[mine]], kind="stable")]
        needed = np.cumsum(least[table[CLASS][rows[mine]].astype(np.intp)])
        marked[mine[needed > cores]] = False
    return marked


def shown_memory(size: float) -> str:
    """Bytes in a person's units: `1 TiB`, `23.5 GiB`, `80 bytes`."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 2.0 ** (10 * power):
            return f"{size / 2.0 ** (10 * power):.3g} {unit}"
    return f"{size:,.0f} bytes"
