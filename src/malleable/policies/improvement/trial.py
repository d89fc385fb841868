"""A short trial of two policies on the same jobs, drawn from the workload's own laws, their sizes unknown.

The fit knows of a law of sizes no more than its mean. Where sizes are not exponential WHAM may learn from the
work done so far what is left of a job, and the improvement may not gain what it promises; so it is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.run import Run
from malleable.sources import Drawn

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.rule_interface import JobProgram
    from malleable.model import Workload

JOBS, SEED = 60_000, 1301
BATCHES = 32
WARM_UP = 0.1
"""Share of the batches that is left out, as the system starts empty."""


class Gain(NamedTuple):
    """How much cheaper the second policy is, as a share of the first's cost, and the standard error."""

    mean: float
    error: float


def gain_of(costs: FloatArray, improved: FloatArray) -> Gain:
    """The gain from costs by batch, paired."""
    differences, cost = costs - improved, float(costs.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    return Gain(float(differences.mean()) / cost, float(error) / cost)


def tried(workload: Workload, cores: float, first: JobProgram, second: JobProgram) -> Gain:
    """The gain of the second program over the first on jobs of unknown size."""
    return gain_of(*(_costs(workload, cores, program) for program in (first, second)))


def _costs(workload: Workload, cores: float, program: JobProgram) -> FloatArray:
    """Holding cost per job, batch by batch."""
    source = Drawn(SEED).stream(workload)
    run = Run(workload, cores, program, jobs=JOBS, source=source, sizes_known=False)
    run.extend(JOBS)
    records = run.outcome().records
    spent = records.area @ workload.holding_costs
    count = len(spent) // BATCHES * BATCHES
    batches = spent[:count].reshape(BATCHES, -1).sum(axis=1)
    return np.asarray(batches[int(WARM_UP * BATCHES) :])
