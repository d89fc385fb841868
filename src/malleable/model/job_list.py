"""Given jobs: a list with arrival times and sizes, from a log or drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malleable.contracts import FloatArray
from malleable.errors import JobsError
from malleable.model.workload import Workload


@dataclass(frozen=True, eq=False)
class JobList:
    """Jobs in order of arrival; the workload describes their classes, not how they arrive.

    A size is work: the time that the job takes on one core. `weights` is what a job costs per unit of time
    that it is there; without it, what its class says.
    """

    workload: Workload
    times: FloatArray
    classes: NDArray[np.int64]
    sizes: FloatArray
    weights: FloatArray | None = None
    ids: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, kind in (("times", float), ("classes", np.int64), ("sizes", float), ("weights", float)):
            if (column := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.ascontiguousarray(column, dtype=kind))
        for name in ("times", "classes", "sizes", "weights", "ids", "users"):
            if (column := getattr(self, name)) is not None and len(column) != len(self.times):
                raise JobsError(f"there are {len(self.times)} jobs, but {len(column)} {name}")
        if len(self) and not (np.isfinite(self.times).all() and (np.diff(self.times) >= 0.0).all()):
            raise JobsError("the jobs are not in order of arrival", "sort them by time")
        if not (np.isfinite(self.sizes) & (self.sizes > 0.0)).all():
            raise JobsError("a size is not a positive number", "leave out jobs without work")
        if not ((self.classes >= 0) & (self.classes < len(self.workload.classes))).all():
            raise JobsError(f"a class is not one of {len(self.workload.classes)}, counted from 0")
        if not (np.isfinite(self.weight) & (self.weight > 0.0)).all():
            raise JobsError("a weight is not a positive number")

    def __len__(self) -> int:
        return len(self.times)

    @property
    def weight(self) -> FloatArray:
        """What each job costs per unit of time that it is there."""
        if self.weights is not None:
            return self.weights
        return np.array([one.holding_cost for one in self.workload.classes], dtype=float)[self.classes]
