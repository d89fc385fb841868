"""Given jobs: a list with arrival times and sizes, from a log or drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malleable.contracts import FloatArray
from malleable.errors import JobsError
from malleable.model.workload import Workload

NUMBERS = ("times", "sizes", "weights", "cores", "run_times", "estimates", "waits")
"""The columns of real numbers."""


@dataclass(frozen=True, eq=False)
class JobList:
    """Jobs in order of arrival; the workload describes their classes, not how they arrive.

    A size is work: the time that the job takes on one core. `weights` is what a job costs per unit of time
    that it is there; without it, what its class says.

    What a log says of a job as it ran is kept beside it: the `cores` it asked for and ran on, how long it ran
    on these (`run_times`), how long its user said it would (`estimates`), and how long it waited (`waits`).
    NaN stands where the log does not say. `epoch` is the Unix time of time 0 in seconds, moved by the zone's
    offset so that its hours are the hours on a clock there. Jobs of one class of a log that differ in width
    or shape are of several classes of the workload: `groups` names the class of the log for each of these.
    `assumptions` are what was taken for granted in making the list, one sentence each.
    """

    workload: Workload
    times: FloatArray
    classes: NDArray[np.int64]
    sizes: FloatArray
    weights: FloatArray | None = None
    ids: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    cores: FloatArray | None = None
    run_times: FloatArray | None = None
    estimates: FloatArray | None = None
    waits: FloatArray | None = None
    epoch: float | None = None
    groups: tuple[str, ...] | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*NUMBERS, "classes"):
            if (column := getattr(self, name)) is not None:
                kind = np.int64 if name == "classes" else float
                object.__setattr__(self, name, np.ascontiguousarray(column, dtype=kind))
        for name in (*NUMBERS, "classes", "ids", "users"):
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
        if self.groups is not None and len(self.groups) != len(self.workload.classes):
            raise JobsError(f"{len(self.groups)} groups are named for {len(self.workload.classes)} classes")
        self._check_log()

    def _check_log(self) -> None:
        """See that what the log says is possible."""
        if self.cores is not None and not (self.cores >= 1.0).all():
            raise JobsError("a job asks for less than one core", "leave `cores` out, or those jobs")
        for name in ("run_times", "estimates", "waits"):
            column = getattr(self, name)
            if column is not None and not (np.isnan(column) | (np.isfinite(column) & (column >= 0.0))).all():
                raise JobsError(f"one of the {name} is negative or infinite", "NaN stands for an unknown one")

    def __len__(self) -> int:
        return len(self.times)

    @property
    def weight(self) -> FloatArray:
        """What each job costs per unit of time that it is there."""
        if self.weights is not None:
            return self.weights
        return np.array([one.holding_cost for one in self.workload.classes], dtype=float)[self.classes]
