"""Which of several policies costs least? A race on the same jobs, in which those that fall behind leave.

Successive halving: all run on a few jobs, the four best go on with three times as many, the three best with
nine times as many. None leaves because of a standard error, which says little on few jobs at a high load.
The first policy is the yardstick: it stays to the end, and another one wins only if it is cheaper by more
than its standard error. How many jobs there are depends on the number of policies and on how many jobs are
present at once, never on a clock: the same question has the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.policies.base.paired_trial import PairedRun, Trial, relative
from malleable.sources import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.engine.rule_interface import Program
    from malleable.model import Workload

STAGES = (1, 3, 9)
"""Jobs up to the end of each stage, in jobs of the first."""
STAY = (4, 3)
"""Policies beside the yardstick that go on after a stage."""
BATCHES, WARM_UP, JOINED = 16, 4, 12
"""Batches of the first stage; the part of a run that is left out, as machines start empty; the batches that
errors are computed from at any time."""
EVENT, EVENT_PER_JOB = 3e-6, 8e-7
"""Seconds that a job takes in a simulation on a busy core, and more for each of those present."""
FEWEST, MOST = 1_500, 8_000
"""Jobs of the first stage."""
LIMIT = 1.5
"""Seconds, by the times of events above, after which a race ends: under some policies crowds may gather."""


class Race(NamedTuple):
    """Who won, and how far the others were from the yardstick when they left or the race was over."""

    order: tuple[int, ...]
    """Policies, the winner first, by the cost that they do not exceed by more than a standard error; those
    that stayed to the end before those that left."""
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
    programs: Sequence[Program],
    first: int,
    seed: int,
    *,
    sizes_known: bool = True,
) -> Race:
    """Run the race with so many jobs in its first stage."""
    run = PairedRun(workload, cores, programs, stream(workload, seed, first), sizes_known=sizes_known)
    trials = [Trial(0.0, 0.0)] * len(programs)
    jobs, racing, batch = [0] * len(programs), list(range(1, len(programs))), first // BATCHES
    spent = 0.0
    for stage, length in enumerate(STAGES):
        while run.batches < BATCHES * length and spent < LIMIT:
            run.extend(batch, run.batches + 1)
            spent += batch * sum(EVENT + EVENT_PER_JOB * run.present[number] for number in racing)
        jobs[0] = batch * run.batches
        for number in racing:
            jobs[number] = batch * run.batches
            trials[number] = relative(_joined(run, number), _joined(run, 0))
        if stage == len(STAY) or spent >= LIMIT:
            break
        staying = sorted(racing, key=lambda number: trials[number].difference)[: STAY[stage]]
        for number in set(racing) - set(staying):
            run.leave(number)
        racing = staying
    most = [trial.difference + trial.error for trial in trials]
    # Those cheaper than the yardstick come before it, and of these those that stayed to the end.
    order = sorted(range(len(programs)), key=lambda one: (most[one] >= 0.0, one not in racing, most[one]))
    order.remove(0)
    order.insert(sum(one < 0.0 for one in most[1:]), 0)
    return Race(tuple(order), tuple(trials), tuple(jobs))


def _joined(run: PairedRun, number: int) -> FloatArray:
    """The costs of a policy in as many batches at any time, less a quarter, as machines start empty."""
    costs = run.costs_of(number)
    kept = len(costs) - len(costs) // WARM_UP
    latest = costs[len(costs) - kept // JOINED * JOINED :]
    return np.asarray(latest.reshape(JOINED, -1).sum(axis=1))
