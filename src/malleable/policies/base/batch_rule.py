"""Policies of batch systems, which run every job on the cores that it asked for.

A job asks for a number of cores, and its user says how long it runs. In a replay these stand in the table,
one entry per job, and are found by the job's number; elsewhere a job asks for the width of its class, and how
long it runs is known. The numbers stand behind the speedups: how many jobs have entries, the widths of the
classes, then the jobs' widths and estimates (NaN: not given).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.engine.rule_interface import CLASS, IDENTITY, REMAINING, SIZE, Program
from malleable.engine.speedup_table import encode, speed
from malleable.policies.base.job_rule import JobRule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


NOTHING = np.zeros(0)


def requests_table(
    workload: Workload, cores: float, widths: FloatArray = NOTHING, estimates: FloatArray = NOTHING
) -> FloatArray:
    """The table of `asked_width` and `time_left`; no job can have more than all cores."""
    own = [[float(len(widths))], class_widths(workload, cores), np.minimum(widths, math.floor(cores))]
    return np.concatenate([encode(workload.speedups, widest=max(cores, 2.0)), *own, estimates])


def class_widths(workload: Workload, cores: float) -> FloatArray:
    """The width that a job of each class asks for: its own if it is rigid, else the narrowest."""
    found = [one.widths_on(cores) for one in workload.job_types]
    return np.array([1.0 if widths is None else float(widths[0]) for widths in found])


def asked_width(jobs: FloatArray, j: int, table: FloatArray) -> float:
    """The width that job j asks for."""
    own, number = int(table[1]), int(jobs[j, IDENTITY])
    if number < table[own]:
        return float(table[own + 1 + int(table[0]) + number])
    return float(table[own + 1 + int(jobs[j, CLASS])])


def time_left(jobs: FloatArray, j: int, k: float, table: FloatArray) -> float:
    """How long job j still runs on k cores, as far as the scheduler knows.

    A job that has outrun its estimate is taken to end at once.
    """
    own, number = int(table[1]), int(jobs[j, IDENTITY])
    pace = speed(table, int(jobs[j, CLASS]), k)
    if number < table[own]:
        estimate = float(table[own + 1 + int(table[0]) + int(table[own]) + number])
        if estimate >= 0.0:
            ran = (float(jobs[j, SIZE]) - float(jobs[j, REMAINING])) / pace
            return max(estimate - ran, 0.0)
    return float(jobs[j, REMAINING]) / pace


class BatchRule(JobRule):
    """A job rule that reads what jobs ask for with `policies.base.batch_rule`."""

    whole_cores: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        return requests_table(workload, cores)

    def requested(
        self, workload: Workload, cores: float, widths: FloatArray, estimates: FloatArray
    ) -> Program:
        """What a replay runs: the same rule, and each job asks for a width and a time of its own."""
        return Program(self.rule, requests_table(workload, cores, widths, estimates), sees_all=True)
