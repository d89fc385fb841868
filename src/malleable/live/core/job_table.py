"""The jobs present as columns of numbers, in order of arrival, so that a decision about many costs little.

A job has a row for life. Rows of jobs that are gone stay empty until half of them are; then the table is
packed, so that coming and going take constant time on average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray

PRESENT, CLASS, WEIGHT, OWN_WEIGHT, ARRIVED = range(5)
TARGET, STARTED, RESTARTS, CALM, KEPT = range(5, 10)
"""The last decision, whether the job was ever given cores, how often it was resized since, until when it is
quiet, and the width it has chosen (for good, if it is moldable)."""
SIZE, DONE, SPEED, SINCE = range(10, 14)
"""Work in all (NaN: unknown), work done up to the time `SINCE`, and its speed from then on."""
RAN, MEMORY, NEVER_PAUSE, MOST = range(14, 18)
"""Whether it has ever said that it uses cores, the memory it was promised, whether it must not be paused, and
the most cores that it takes (infinite: any number)."""
DECLARED = 18
"""Whether its size is what it declared, and not measured."""
SERVED, FAIR, FAIR_RATE, GOAL, WAITS_SINCE, ON_HOLD = range(19, 25)
"""Work that it has done, repeated work included; what it would have done on its share of the cores, and how
fast that grows; up to which `SERVED` it is urgent; since when it has had no cores; whether it is on hold."""
NUMBER = 25
"""How many jobs had come before it."""
COLUMNS = 26
FIRST_ROWS = 64


class JobTable:
    """Rows of numbers, one per job; `ids` has their names, `row_of` their places."""

    def __init__(self) -> None:
        self.columns = np.zeros((COLUMNS, FIRST_ROWS))
        self.ids: list[str] = []
        self.row_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.row_of)

    def __contains__(self, job: str) -> bool:
        return job in self.row_of

    def __getitem__(self, column: int) -> FloatArray:
        values: FloatArray = self.columns[column]
        return values

    def copy(self) -> JobTable:
        """The same rows, to be changed without changing these."""
        made = JobTable()
        made.columns, made.ids, made.row_of = self.columns.copy(), list(self.ids), dict(self.row_of)
        return made

    def add(self, job: str, values: dict[int, float]) -> int:
        """A new job's row."""
        if len(self.ids) == self.columns.shape[1]:
            self._pack()
        row = self.row_of[job] = len(self.ids)
        self.ids.append(job)
        self.columns[:, row] = 0.0
        self.columns[PRESENT, row], self.columns[MOST, row] = 1.0, np.inf
        for column, value in values.items():
            self.columns[column, row] = value
        return row

    def remove(self, job: str) -> None:
        """Forget a job."""
        row = self.row_of.pop(job)
        self.columns[PRESENT, row] = 0.0
        self.ids[row] = ""

    def rows(self) -> IntArray:
        """The rows of the jobs present, in order of arrival."""
        return np.flatnonzero(self.columns[PRESENT, : len(self.ids)])

    def _pack(self) -> None:
        """Close the gaps; twice as much room if less than half of it is gaps."""
        kept = self.rows()
        room = self.columns.shape[1] * (2 if 2 * len(kept) > len(self.ids) else 1)
        columns = np.zeros((COLUMNS, room))
        columns[:, : len(kept)] = self.columns[:, kept]
        self.columns, self.ids = columns, [self.ids[row] for row in kept.tolist()]
        self.row_of = {job: row for row, job in enumerate(self.ids)}
