"""A task says where its jobs come from and which engine runs it."""

from dataclasses import replace

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine import engines
from malleable.engine.run import Run, departures
from malleable.errors import ParameterError, UnknownKindError
from malleable.model import paper_workload
from malleable.simulation import Settings, Task, program, run_task
from malleable.sources import Chunk, Drawn, Given

CORES, LOAD, COUNT = 16, 0.5, 1024
WORKLOAD = paper_workload(CORES, LOAD)


def task(source, **settings):
    chosen = Settings(**{"jobs": COUNT, "interpreted": True, **settings})
    return Task(WORKLOAD, CORES, Policy.of("equi"), "equi", chosen, source)


def given(count):
    """The first jobs of a seed, as arrays."""
    return Given(Chunk(*(column[:count] for column in Drawn(5).stream(WORKLOAD).take())))


def test_drawn_or_given_the_same_jobs_give_the_same_records():
    """A run does not know whether its jobs were drawn or given."""
    drawn, arrays = (run_task(task(source)).records.arrays() for source in (Drawn(5), given(COUNT)))
    assert all(np.array_equal(drawn[name], arrays[name], equal_nan=True) for name in drawn)


def test_given_jobs_leave_when_they_should():
    """The response times of a run of given jobs are those of its departures, found job by job."""
    source = given(COUNT)
    records = run_task(task(source)).records
    leaves = departures(
        WORKLOAD, CORES, program(Policy.of("equi"), WORKLOAD, CORES), source.jobs, interpreted=True
    )
    within = leaves <= records.duration.sum()
    assert records.departures.sum() == within.sum()
    assert records.response.sum() == pytest.approx((leaves - source.jobs.times)[within].sum())


def test_a_run_with_a_precision_ends_with_its_jobs():
    """Where the jobs end before the precision is met, so does the run."""
    outcome = run_task(task(given(COUNT), jobs=None, precision=1e-6))
    assert outcome.jobs == COUNT
    assert not outcome.interrupted


def test_the_engine_is_chosen_by_name(monkeypatch):
    """Another engine takes one entry; a name that is none is an error that offers those that there are."""
    started = []

    def noted(*args, least_jobs, seed, **options):
        started.append(args[1])
        assert least_jobs > 0
        assert seed == 1
        return Run(*args, **options)

    monkeypatch.setattr(engines, "ENGINES", {**engines.ENGINES, "gpu": noted})
    one, other = task(Drawn(1)), replace(task(Drawn(1)), engine="gpu")
    assert run_task(one).records.area.tolist() == run_task(other).records.area.tolist()
    assert started == [CORES]
    with pytest.raises(ParameterError) as caught:
        run_task(replace(one, engine="abacus"))
    assert caught.value.problem == "there is no engine 'abacus'"
    assert caught.value.hint == "known: cpu, gpu"


def test_the_engine_may_stand_in_a_file(tmp_path):
    """`file.py:Name` is an engine too; a name that the file lacks is an error that says which it has."""
    file = tmp_path / "twice.py"
    file.write_text(
        "from malleable.engine.run import Run\n\n\n"
        "def twice(workload, cores, program, **options):\n"
        "    return Run(workload, 2 * cores, program, **options)\n"
    )
    plain = run_task(replace(task(Drawn(1)), cores=2 * CORES)).records.area
    assert run_task(replace(task(Drawn(1)), engine=f"{file}:twice")).records.area.tolist() == plain.tolist()
    with pytest.raises(UnknownKindError) as caught:
        run_task(replace(task(Drawn(1)), engine=f"{file}:thrice"))
    assert "twice" in caught.value.hint
