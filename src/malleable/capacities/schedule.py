"""A schedule: so many cores from so many times on, once or again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from annotated_types import Ge, MinLen

from malleable.catalog.spec import NonNegative, Positive
from malleable.contracts import Capacity, Changes, CoreChanges, FloatArray
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

PERIODS = 256
"""Periods whose changes are handed out at a time."""


@dataclass(frozen=True)
class Schedule(Capacity):
    """`cores[i]` from `times[i]` on, repeated every `period` if one is given."""

    times: Annotated[tuple[NonNegative, ...], MinLen(1)]
    cores: Annotated[tuple[Annotated[int, Ge(0)], ...], MinLen(1)]
    period: Positive | None = None

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Read a document or the text of an option, where a single time or number of cores is no list."""
        lists = {"times", "cores"}
        return super().from_parameters(
            {
                key: (value,) if key in lists and isinstance(value, int | float) else value
                for key, value in parameters.items()
            }
        )

    def check(self) -> None:
        if len(self.times) != len(self.cores):
            problem = f"there are {len(self.times)} times and {len(self.cores)} numbers of cores"
            raise ParameterError(problem, "give a number of cores for each time")
        for i in range(1, len(self.times)):
            if self.times[i] <= self.times[i - 1]:
                problem = f"{self.times[i]:g} follows {self.times[i - 1]:g}"
                raise ParameterError(problem, "let the times rise", ("times", i))
        if self.period is not None and self.times[-1] >= self.period:
            problem = f"the time {self.times[-1]:g} is beyond the period"
            raise ParameterError(problem, "give times within one period", ("times",))
        if not (any(self.cores) if self.period else self.cores[-1]):
            raise ParameterError("the schedule leaves no cores", "let it end with some", ("cores",))

    def check_on(self, cores: float) -> None:
        if max(self.cores) > cores:
            raise ParameterError(
                f"the schedule has {max(self.cores)} cores, the machine {cores:g}",
                "give the machine the most cores that it ever has",
                ("capacity",),
            )

    def most_cores(self, cores: float) -> float:
        at_first = cores if self.period is None and self.times[0] > 0.0 else 0.0
        return float(max(*self.cores, at_first))

    def mean_cores(self, cores: float) -> float:
        if self.period is None:
            # What holds for a run of any length.
            return self.most_cores(cores)
        lengths = np.diff([*self.times, self.period + self.times[0]])
        return float(np.dot(lengths, self.cores) / self.period)

    def changes(self, cores: float, seed: int) -> CoreChanges:  # noqa: ARG002 - nothing is random here
        return _Repeated(self, cores)


class _Repeated:
    """The changes of a schedule, period after period."""

    def __init__(self, schedule: Schedule, cores: float) -> None:
        self._schedule, self._next = schedule, 0
        at_start = schedule.times[0] == 0.0
        before = cores if schedule.period is None else float(schedule.cores[-1])
        self.cores_at_start = float(schedule.cores[0]) if at_start else before

    def take(self) -> Changes:
        """The changes of the next periods."""
        times, cores = np.array(self._schedule.times), np.array(self._schedule.cores, dtype=float)
        if self._schedule.period is None:
            some = slice(None) if self._next == 0 else slice(0)
            self._next = 1
            return Changes(times[some], cores[some], np.inf)
        starts = self._schedule.period * np.arange(self._next, self._next + PERIODS)
        self._next += PERIODS
        made: FloatArray = (starts[:, None] + times).ravel()
        return Changes(made, np.tile(cores, PERIODS), float(starts[-1] + self._schedule.period))
