"""Files that commands are given in the tests: jobs, policies, and a class of a workload."""

CSV = "id,class,remaining\na,class-1,0.1\nb,class-1,0.3\nc,class-2,0.5\nd,class-3,0.2\ne,class-3,0.4\n"
CLASS = """\
[[classes]]
name = "etl"
arrivals = { kind = "poisson", rate = 1.0 }
size = { kind = "exponential", mean = 1.0 }
speedup = { kind = "power", exponent = 0.5 }
"""
MINE = """\
from dataclasses import dataclass

import numpy as np

from malleable.contracts import Allocation, Policy


def equal(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = cores / len(out)


def raises(jobs, cores):
    return [1 / 0]


def too_much(jobs, cores, table, out):
    for j in range(len(out)):
        out[j] = cores


def nothing_known(jobs, cores):
    return np.full(len(jobs), np.nan)


def negative(jobs, cores):
    return np.full(len(jobs), -1.0)


@dataclass(frozen=True)
class Broken(Policy):
    \"\"\"Raises when asked.\"\"\"

    def allocate(self, jobs, cores, *, integer=False):
        raise KeyError("nothing here")
"""
