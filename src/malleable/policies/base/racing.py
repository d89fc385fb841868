"""Which of several policies costs least? A race on the same jobs, in which those that fall behind leave.

Successive halving: all run on a few jobs, the better ones go on with three times as many, the two best with
nine times as many. Who is behind the leader by more than chance leaves at once. The first policy is the
yardstick: it stays to the end, and another one wins only if it is cheaper by more than its standard error.
How many jobs there are depends on the number of policies and on how many jobs are present at once, never on
a clock: the same question has the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.policies.base.paired_trial import PairedRun, Trial, relative
from malleable.sources import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.engine.rule_interface import ClassProgram, JobProgram
    from malleable.model import Workload

STAGES = (1, 3, 9)
"""Jobs up to the end of each stage, in jobs of the first."""
STAY = (4, 2)
"""Policies beside the yardstick that go on after a stage."""
BATCHES = 16
"""Batches of the first stage, and those that errors are computed from at any time."""
BEHIND = 3.0
"""Standard errors by which a policy that leaves is behind the leader."""
EVENT, EVENT_PER_JOB = 3e-6, 8e-7
"""Seconds that a job takes in a simulation on a busy core, and more for each of those present."""
FEWEST, MOST = 1_200, 8_000
"""Jobs of the first stage."""


class Race(NamedTuple):
    """Who won, and how far the others were from the yardstick when they left or the race was over."""

    order: tuple[int, ...]
    """Policies, the winner first, by the cost that they do not exceed by more than a standard error."""
    trials: tuple[Trial, ...]
    jobs: tuple[int, ...]
    """Jobs that each of them ran on."""


def jobs_for(seconds: float, racing: int, present: float) -> int:
    """Jobs of the first stage of a race that takes about so long."""
    runs = racing * STAGES[0]
    for before, after, stay in zip(STAGES[:-1], STAGES[1:], STAY, strict=True):
        runs += min(stay, racing) * (after - before)
    fit = seconds / (runs * (EVENT + EVENT_PER_JOB * present))
    return BATCHES * int(min(max(fit, FEWEST), MOST) / BATCHES)


def race(
    workload: Workload,
    cores: float,
    programs: Sequence[ClassProgram | JobProgram],
    first: int,
    seed: int,
    *,
    sizes_known: bool = True,
) -> Race:
    """Run the race with so many jobs in its first stage."""
    run = PairedRun(workload, cores, programs, stream(workload, seed, first), sizes_known=sizes_known)
    trials = [Trial(0.0, 0.0)] * len(programs)
    jobs, racing, batch = [0] * len(programs), list(range(1, len(programs))), first // BATCHES
    for stage, length in enumerate(STAGES):
        run.extend(batch, BATCHES * length)
        jobs[0] = batch * run.batches
        for number in racing:
            jobs[number] = batch * run.batches
            trials[number] = relative(_joined(run, number), _joined(run, 0))
        if stage == len(STAY):
            break
        staying = _staying(run, racing, trials, STAY[stage])
        for number in set(racing) - set(staying):
            run.leave(number)
        racing = staying
        if len(racing) <= 1 and _is_clear(trials, racing):
            break
    ranked = sorted(range(len(programs)), key=lambda number: trials[number].difference + trials[number].error)
    last = [number for number in ranked if number == 0 or number in racing]
    return Race(tuple(last + [one for one in ranked if one not in last]), tuple(trials), tuple(jobs))


def _joined(run: PairedRun, number: int) -> np.ndarray:
    """The costs of a policy in as many batches as the first stage has."""
    return run.costs_of(number).reshape(BATCHES, -1).sum(axis=1)


def _staying(run: PairedRun, racing: list[int], trials: list[Trial], most: int) -> list[int]:
    """Who goes on: not far behind the leader, and among the best."""
    best = sorted(racing, key=lambda number: trials[number].difference)
    leader = _joined(run, best[0])
    behind = [relative(_joined(run, number), leader) for number in best]
    near = [one for one, by in zip(best, behind, strict=True) if by.difference <= BEHIND * by.error]
    return near[:most]


def _is_clear(trials: list[Trial], racing: list[int]) -> bool:
    """Whether it is clear which side of the yardstick the last one is on."""
    return all(abs(trials[number].difference) > BEHIND * trials[number].error for number in racing)
