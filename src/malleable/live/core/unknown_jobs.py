"""What is believed of jobs of which nothing is known: stated here, once.

Amdahl's law with a sequential share of 5 % (13.9 times as fast on 40 cores, 20 times at most): most programs
that were written to run in parallel do better on few cores and worse on many. Sizes vary widely, with a mean
of a minute; a job that has run long is then expected to run on for long. Arrivals matter to policies that
plan ahead only.
"""

from __future__ import annotations

from malleable.arrivals.poisson import Poisson
from malleable.distributions.hyperexponential import Hyperexponential
from malleable.model import JobClass, Workload
from malleable.speedups.amdahl import Amdahl

UNKNOWN = JobClass(
    name="unknown",
    arrivals=Poisson(rate=1.0 / 60.0),
    size=Hyperexponential(probabilities=(0.9, 0.1), rates=(0.9 / 30.0, 0.1 / 30.0)),
    speedup=Amdahl(sequential=0.05),
)
"""A class of which nothing is known."""


def unknown_workload() -> Workload:
    """The workload of a machine whose owner has not described any."""
    return Workload("unknown", (UNKNOWN,))
