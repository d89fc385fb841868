"""A log of jobs as columns: what ran, when, on how many cores, and what of the file could not be used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from malleable.contracts import FloatArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    Column = Sequence[str] | NDArray[Any]
    """A column of a file: texts, or the numbers, dates and lengths of time of a Parquet file."""

MISSING = -1
"""The code of a label that a job does not have."""


class Dropped(NamedTuple):
    """Rows that cannot be used, and why."""

    reason: str
    rows: int


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of words: the different ones, and for each job the place of its own, -1 where it has none."""

    names: tuple[str, ...]
    codes: IntArray

    @classmethod
    def of(cls, words: Sequence[str]) -> Labels:
        """Words in the order of the jobs; an empty one is missing."""
        places: dict[str, int] = {"": MISSING}
        codes = np.fromiter((places.setdefault(w, len(places) - 1) for w in words), np.intp, len(words))
        return cls(tuple(places)[1:], codes)

    @classmethod
    def of_numbers(cls, numbers: FloatArray, prefix: str = "") -> Labels:
        """Numbers that stand for users or programs; negative ones and NaN are missing."""
        given = np.isfinite(numbers) & (numbers >= 0.0)
        values, places = np.unique(numbers[given], return_inverse=True)
        codes = np.full(len(numbers), MISSING, dtype=np.intp)
        codes[given] = places
        return cls(tuple(f"{prefix}{value:.15g}" for value in values.tolist()), codes)

    @classmethod
    def of_column(cls, column: Column, prefix: str) -> Labels:
        """The words of a column, or its numbers behind `prefix`."""
        if isinstance(column, np.ndarray):
            return cls.of_numbers(column.astype(float), prefix)
        return cls.of(column)

    def take(self, rows: IntArray) -> Labels:
        """The labels of some of the jobs; words that none of them has are forgotten."""
        codes = self.codes[rows]
        used, places = np.unique(codes, return_inverse=True)
        kept = used[used != MISSING]
        return Labels(tuple(self.names[i] for i in kept), places - (len(used) - len(kept)))

    @cached_property
    def counts(self) -> IntArray:
        """How many jobs have each word."""
        return np.bincount(self.codes[self.codes != MISSING], minlength=len(self.names))

    def words(self, missing: str = "") -> list[str]:
        """The word of each job."""
        every = np.array([*self.names, missing], dtype=object)
        words: list[str] = every[self.codes].tolist()
        return words

    def __len__(self) -> int:
        return len(self.codes)


NUMBERS = ("duration", "wait", "size", "estimate", "weight", "min_cores", "max_cores")
"""Columns of numbers that a log may have; NaN stands where a job lacks one."""
WORDS = ("user", "group", "application", "queue", "status", "shape")
"""Columns of words that a log may have."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The jobs of a log in order of submission; columns that the log does not have are None.

    All times are in seconds, and `submit` counts from the first job. `cores` is the width that a job ran on,
    or asked for; `duration` is how long it ran on these, `wait` how long before. `size` is its work, the time
    on one core, for logs that say so. `epoch` is the Unix time of time 0, moved by the zone's offset so that
    its hours are those on a clock there.
    """

    name: str
    format: str
    submit: FloatArray
    cores: FloatArray
    duration: FloatArray | None = None
    wait: FloatArray | None = None
    size: FloatArray | None = None
    estimate: FloatArray | None = None
    weight: FloatArray | None = None
    min_cores: FloatArray | None = None
    max_cores: FloatArray | None = None
    user: Labels | None = None
    group: Labels | None = None
    application: Labels | None = None
    queue: Labels | None = None
    status: Labels | None = None
    shape: Labels | None = None
    ids: NDArray[Any] | None = None
    unit: str = "cores"
    """What a job runs on: cores, GPUs or nodes."""
    epoch: float | None = None
    machine: float | None = None
    """How many of them there were, where the log says so."""
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.submit)

    @cached_property
    def start(self) -> FloatArray | None:
        """When each job began; NaN where the log does not say."""
        return None if self.wait is None else self.submit + self.wait

    @cached_property
    def end(self) -> FloatArray | None:
        """When each job was over; where the wait is unknown, as if it had begun at once."""
        if self.duration is None:
            return None
        waits = 0.0 if self.wait is None else np.nan_to_num(self.wait)
        return self.submit + waits + self.duration

    @cached_property
    def core_seconds(self) -> FloatArray | None:
        """What each job used of the machine."""
        return None if self.duration is None else self.cores * self.duration

    @property
    def span(self) -> float:
        """From the first submission to the end of the last job, or to the last submission."""
        last = self.submit[-1:] if self.end is None else self.end
        return float(last.max()) if len(last) else 0.0

    def labels(self, column: str) -> Labels | None:
        """A column of words by name."""
        found: Labels | None = getattr(self, column)
        return found

    @property
    def rows_dropped(self) -> int:
        """How many rows could not be used."""
        return sum(one.rows for one in self.dropped)
