"""A snapshot tells the state of a run from outside, and is not touched by what happens next."""

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.run import Run
from malleable.model import paper_workload
from malleable.simulation import program
from malleable.sources import ArrayStream

CORES = 4
TIMES, CLASSES, SIZES = [0.0, 1.0, 2.0], [0, 1, 1], [100.0, 100.0, 100.0]


def started(policy):
    workload = paper_workload(CORES)
    jobs = ArrayStream(np.array(TIMES), np.array(CLASSES), np.array(SIZES))
    made = program(Policy.of(policy), workload, CORES)
    return Run(workload, CORES, made, jobs=3, source=jobs, interpreted=True)


@pytest.mark.parametrize("policy", ["equi", "fcfs", "hesrpt"])
def test_state_after_each_arrival(policy):
    """While three long jobs arrive, time and counts are those of the arrivals.

    EQUI and heSRPT then use all cores, and FCFS one per job.
    """
    run = started(policy)
    assert (run.snapshot().time, run.snapshot().present, run.snapshot().cores_in_use) == (0.0, 0, 0.0)
    seen = []
    for jobs, counts in ((1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 2, 0])):
        run.extend(jobs)
        seen.append(run.snapshot())
        assert seen[-1].time == TIMES[jobs - 1]
        assert seen[-1].counts.tolist() == counts
        assert seen[-1].present == jobs
        assert seen[-1].cores_in_use == pytest.approx(jobs if policy == "fcfs" else CORES)
    assert [one.present for one in seen] == [1, 2, 3]


def test_a_snapshot_is_a_copy():
    """What is done to a snapshot does not reach the run."""
    run = started("equi")
    run.extend(2)
    run.snapshot().counts[:] = 99.0
    assert run.snapshot().present == 2
