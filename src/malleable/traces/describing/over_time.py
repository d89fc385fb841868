"""Jobs over time: hours of the week, cores in use, the most that ever are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray

HOUR, DAY, WEEK = 3600.0, 86400.0, 7 * 86400.0
HOURS = 7 * 24
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST_DAY = 3
"""The first of January 1970 was a Thursday."""


def hour_of_week(times: FloatArray, epoch: float | None) -> IntArray:
    """The hour of the week at some times, from Monday at 0; without a date of time 0, from time 0 on."""
    start = 0.0 if epoch is None else epoch + FIRST_DAY * DAY
    hours: IntArray = (np.floor((times + start) / HOUR).astype(np.int64) % HOURS).astype(np.intp)
    return hours


def day_names(*, dated: bool) -> tuple[str, ...]:
    """What the days are called."""
    return DAYS if dated else tuple(f"day {day}" for day in range(1, 8))


def hour_name(hour: int, *, dated: bool) -> str:
    """An hour of the week for people."""
    day, clock = divmod(hour, 24)
    return f"{day_names(dated=dated)[day]} {clock}–{clock + 1} h"


def peak(starts: FloatArray, ends: FloatArray, widths: FloatArray) -> float:
    """The most cores that are ever in use; a job that ends makes room for one that starts then."""
    times = np.concatenate([ends, starts])
    order = np.argsort(times, kind="stable")
    return float(np.cumsum(np.concatenate([-widths, widths])[order]).max(initial=0.0))


def area_up_to(times: FloatArray, starts: FloatArray, ends: FloatArray, widths: FloatArray) -> FloatArray:
    """The integral of the cores in use up to some times."""

    def since(moments: FloatArray) -> FloatArray:
        order = np.argsort(moments)
        came, width = moments[order], widths[order]
        place = np.searchsorted(came, times, side="right")
        total = np.append(0.0, np.cumsum(width))[place]
        moment = np.append(0.0, np.cumsum(width * came))[place]
        area: FloatArray = total * times - moment
        return area

    return since(starts) - since(ends)
