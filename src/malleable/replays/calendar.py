"""The value of a core over time: the price path of the bound as a calendar of hours and weekdays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.traces.describing.over_time import HOUR, HOURS, day_names, hour_name, hour_of_week

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.job_list import JobList
    from malleable.theory.price_path import JobsBound

MOST_HOURS = 10**6
"""A hundred years of hours; a log that lasts longer is cut off."""


class Calendar(NamedTuple):
    """What one more core saves per unit of time that it is there, by weekday and hour of the day."""

    jobs: JobList
    values: FloatArray
    """(days, hours); NaN for hours of the week that the log does not have."""

    @property
    def days(self) -> tuple[str, ...]:
        """What the rows are called."""
        return day_names(dated=self.jobs.epoch is not None)

    @property
    def words(self) -> str:
        """When cores are worth most and least."""
        flat = self.values.ravel()
        if np.isfinite(flat).sum() == 1:
            return f"One more core saves {np.nanmax(flat):.3g} job-hours per hour."
        dated = self.jobs.epoch is not None
        best, worst = int(np.nanargmax(flat)), int(np.nanargmin(flat))
        most, least = hour_name(best, dated=dated), hour_name(worst, dated=dated)
        return (
            f"One more core saves most on {most} ({flat[best]:.3g} job-hours per hour), "
            f"least on {least} ({flat[worst]:.3g})."
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        return {"days": list(self.days), "values": self.values.tolist(), "words": self.words}


def calendar(jobs: JobList, bound: JobsBound) -> Calendar:
    """The mean price of a core in each hour of the week, up to the last arrival."""
    first, last = float(jobs.times[0]), float(jobs.times[-1])
    shift = 0.0 if jobs.epoch is None else (jobs.epoch + first) % HOUR
    hours = min(int(np.ceil((last - first + shift) / HOUR)) or 1, MOST_HOURS)
    edges = np.clip(first - shift + HOUR * np.arange(hours + 1), first, max(last, first + 1.0))
    paid = np.diff(np.interp(edges, bound.edges, bound.path.paid))
    places = hour_of_week(0.5 * (edges[1:] + edges[:-1]), jobs.epoch)
    total = np.bincount(places, paid, minlength=HOURS)
    length = np.bincount(places, np.diff(edges), minlength=HOURS)
    values = np.where(length > 0.0, total / np.where(length > 0.0, length, 1.0), np.nan)
    return Calendar(jobs, values.reshape(7, 24))
