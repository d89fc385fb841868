"""Does a rule cost less than another one? A short simulation of both on the same jobs, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.kernels.class_kernel import AREA
from malleable.engine.machines import machine
from malleable.sources import stream

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.engine.machines import Machine
    from malleable.engine.rule_interface import Program
    from malleable.model import Workload
    from malleable.sources import Stream

BATCH, STAGES = 1_000, (24, 48, 96)
"""Jobs in a batch of a trial in stages, and batches after which it may end."""
FEWEST = 4
"""Batches at least, with little effort."""
CLEAR = 3.0
"""Standard errors by which a gain or a loss ends a trial in stages early."""
HEADROOM, HEAVY, TOLERATED = 1.25, 0.95, 0.005
"""The load may be off by this factor, up to a heavy one, and no more may then be lost."""
BLIND_BATCH, BLIND_BATCHES, WARM_UP = 1_872, 32, 3
"""Jobs in a batch of a trial with unknown sizes, its batches, and those left out, as it starts empty."""


class Trial(NamedTuple):
    """The relative difference of the costs (below 0: the first rule is cheaper), and its standard error."""

    difference: float
    error: float

    def gains(self, errors: float, least: float = 0.0) -> bool:
        """Whether the first rule costs less, by so many standard errors and at least by this share."""
        return -self.difference > max(errors * self.error, least)

    @property
    def may_lose(self) -> bool:
        """Whether the first rule may cost more than can be tolerated."""
        return self.difference + self.error > TOLERATED


def at_higher_load(workload: Workload, cores: float, headroom: float = HEADROOM) -> Workload | None:
    """The workload at a load that is higher by a factor, up to a heavy one; None if it is there already."""
    load = workload.load(cores)
    if headroom <= 1.0 or load >= HEAVY:
        return None
    return workload.at(cores, min(headroom * load, HEAVY))


def at_lower_load(workload: Workload, cores: float, headroom: float = HEADROOM) -> Workload | None:
    """The workload at a load that is lower by a factor; None if the load is to be trusted."""
    return None if headroom <= 1.0 else workload.at(cores, workload.load(cores) / headroom)


def relative(costs: FloatArray, base: FloatArray) -> Trial:
    """The difference from the costs of both in the same batches."""
    differences, cost = costs - base, float(base.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    return Trial(float(differences.mean()) / cost, float(error) / cost)


def trial_in_stages(
    workload: Workload,
    cores: float,
    rule: Program,
    base: Program,
    seed: np.random.SeedSequence,
    effort: float = 1.0,
) -> Trial:
    """The cost of a rule relative to another's, on as many jobs as it takes to see, up to a limit.

    With an effort below 1 there are so many fewer batches. Neighbours are joined in pairs, which leaves less
    of what batches of one run share.
    """
    run = _Run(workload, cores, (rule, base), stream(workload, seed, BATCH), sizes_known=True)
    found = Trial(0.0, np.inf)
    for batches in STAGES:
        run.extend(BATCH, max(FEWEST, 2 * int(0.5 * batches * effort)))
        found = relative(*(costs.reshape(-1, 2).sum(axis=1) for costs in run.costs))
        if abs(found.difference) > CLEAR * found.error:
            break
    return found


def blind_trial(
    workload: Workload,
    cores: float,
    rule: Program,
    base: Program,
    seed: int,
    batch: int = BLIND_BATCH,
) -> Trial:
    """The same on jobs whose sizes neither rule is told, with so many of them in a batch."""
    run = _Run(workload, cores, (rule, base), stream(workload, seed), sizes_known=False)
    run.extend(batch, BLIND_BATCHES)
    return relative(*run.costs[:, WARM_UP:])


class _Run:
    """Machines that are fed the same jobs, and what each of them cost in every batch."""

    def __init__(
        self,
        workload: Workload,
        cores: float,
        programs: tuple[Program, ...],
        jobs: Stream,
        *,
        sizes_known: bool,
    ) -> None:
        self._machines = [machine(workload, cores, one, sizes_known=sizes_known) for one in programs]
        self._prices, self._jobs = workload.holding_costs, jobs
        self._chunk, self._next = jobs.take(), 0
        self._costs: list[list[float]] = []

    @property
    def costs(self) -> FloatArray:
        """Costs by program and batch."""
        return np.array(self._costs).T

    def extend(self, size: int, batches: int) -> None:
        """Go on to so many batches of `size` jobs in all."""
        while len(self._costs) < batches:
            left = size
            while left > 0:
                left -= self._fed(left)
            self._costs.append([self._cost(one) for one in self._machines])

    def _fed(self, most: int) -> int:
        """Feed what is left of a chunk, up to `most` jobs, to all machines."""
        if self._next == self._chunk.size:
            self._chunk, self._next = self._jobs.take(), 0
        end = min(self._next + most, self._chunk.size)
        for one in self._machines:
            one.feed(self._chunk, self._next, end)
        fed, self._next = end - self._next, end
        return fed

    def _cost(self, one: Machine) -> float:
        """The holding cost that a machine has run up since the last batch."""
        return float(one.collect()[0][AREA] @ self._prices)
