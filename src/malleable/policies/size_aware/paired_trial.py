"""Does a rule cost less than another one? A short simulation of both on the same jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.kernels.class_kernel import AREA
from malleable.engine.machines import machine
from malleable.sources import stream

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.machines import Machine
    from malleable.engine.rule_interface import JobProgram
    from malleable.model import Workload
    from malleable.sources import Chunk

BATCH, STAGES = 1_000, (24, 48, 96)
"""Jobs in a batch, and batches after which the trial may end."""
FEWEST = 4
"""Batches at least, with little effort."""
CLEAR, ENOUGH = 3.0, 1.0
"""Standard errors by which a gain or a loss ends a trial early, and by which a gain counts in the end."""


class Trial(NamedTuple):
    """The relative difference of the costs, and its standard error."""

    difference: float
    error: float

    @property
    def gained(self) -> bool:
        """Whether the first rule costs less, beyond doubt."""
        return self.difference < -ENOUGH * self.error


def paired_trial(
    workload: Workload,
    cores: float,
    rule: JobProgram,
    base: JobProgram,
    seed: np.random.SeedSequence,
    effort: float = 1.0,
) -> Trial:
    """The cost of a rule relative to another's, on as many jobs as it takes to see, up to a limit.

    With an effort below 1 there are so many fewer batches.
    """
    machines = machine(workload, cores, rule), machine(workload, cores, base)
    jobs = stream(workload, seed, BATCH)
    costs: list[list[float]] = [[], []]
    found = Trial(0.0, np.inf)
    for batches in STAGES:
        while len(costs[0]) < max(FEWEST, 2 * int(0.5 * batches * effort)):
            chunk = jobs.take()
            for each, own in zip(machines, costs, strict=True):
                own.append(_cost(each, chunk, workload.holding_costs))
        found = _judged(np.array(costs[0]), np.array(costs[1]))
        if abs(found.difference) > CLEAR * found.error:
            break
    return found


def _cost(one: Machine, chunk: Chunk, holding_costs: FloatArray) -> float:
    """The holding cost that a machine runs up until the last job of a chunk arrives."""
    one.feed(chunk, 0, chunk.size)
    return float(one.collect()[0][AREA] @ holding_costs)


def _judged(costs: FloatArray, base: FloatArray) -> Trial:
    """Batches of one run are nearly independent, as what is compared is the difference on the same jobs.

    Neighbours are joined in pairs, which leaves less of what they share.
    """
    differences = (costs - base).reshape(-1, 2).sum(axis=1)
    error = differences.std(ddof=1) * np.sqrt(len(differences))
    total = float(base.sum())
    return Trial(float(differences.sum()) / total, float(error) / total)
