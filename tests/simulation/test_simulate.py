"""`simulate` and `compare`: bad input, bad policies, labels, Ctrl-C, spreading, common random numbers."""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from malleable import compare, simulate
from malleable.contracts import Allocation, Policy
from malleable.engine.compiling import SlowPolicyWarning
from malleable.engine.rule_interface import SHARE, ClassProgram
from malleable.engine.run import departures
from malleable.engine.speedup_table import encode
from malleable.errors import InfeasibleError, MalleableError, ParameterError, PolicyError
from malleable.model import paper_workload
from malleable.results import Status
from malleable.simulation import program
from malleable.sources import Chunk
from malleable.statistics import reached

PAPER = paper_workload(8)
FEW = {"jobs": 1500, "interpreted": True}


# --- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "jobs must be"),
        ({"jobs": -5}, "jobs must be"),
        ({"jobs": 2.5}, "jobs must be"),
        ({"precision": 0.0}, "precision must lie between 0 and 1"),
        ({"precision": 1.0}, "precision must lie between 0 and 1"),
        ({"precision": -0.1}, "precision must lie between 0 and 1"),
        ({"precision": math.nan}, "precision must lie between 0 and 1"),
        ({"replications": 0}, "replications must be"),
        ({"seed": -1}, "seed must be"),
        ({"cores": 8.5}, "whole number of cores"),
        ({"cores": 0}, "cores must be"),
        ({"cores": "eight"}, "cores must be"),
        ({"load": 0.0}, "load"),
        ({"warmup": -1}, "warmup"),
    ],
)
def test_bad_numbers(options, words):
    """Numbers that make no sense are refused with their name and value, before anything runs."""
    cores = options.pop("cores", 8)
    with pytest.raises(ParameterError, match=words):
        simulate("paper", cores, "wham", **options)


def test_unstable_load():
    """Load 1 or more is refused with the number of cores that would do; a finite horizon is labelled."""
    with pytest.raises(InfeasibleError, match=r"load is 1\.2") as caught:
        simulate("paper", 8, "wham", load=1.2)
    assert "at least 10 cores" in caught.value.hint
    assert "allow_unstable" in caught.value.hint
    with pytest.raises(InfeasibleError):
        compare("paper", [8, 16], ["wham"], load=1.0)
    result = simulate("paper", 8, "equi", load=1.2, allow_unstable=True, **FEW)
    assert (result.status, result.stable) == ("finite horizon (unstable)", False)
    assert result.bound is None
    assert "finite horizon (unstable)" in str(result)


def test_a_policy_may_be_unstable_below_load_one():
    """SRPT-all wastes cores, so a load that others bear grows without bound, and the result says so."""
    result = simulate("paper", 64, "srpt-all", load=0.5, jobs=700, interpreted=True)
    assert (result.status, result.stable) == (Status.UNSTABLE, False)
    assert any("grow" in note for note in result.notes)


def test_precision_not_reached():
    """A precision that the given jobs cannot reach is labelled; one that is reached stops early."""
    result = simulate("paper", 8, "wham", load=0.25, precision=1e-5, **FEW)
    assert result.status == "precision not reached"
    assert not result.precision_reached
    assert "precision not reached" in str(result)
    assert result.jobs == FEW["jobs"]


# --- bad policies ----------------------------------------------------------------------------------------


def too_many(jobs, cores, table, out):
    out[:] = cores


def not_numbers(jobs, cores, table, out):
    out[:] = np.nan


def negative(jobs, cores, table, out):
    out[:] = 0.0
    out[0] = -1.0


def serve_none(jobs, cores, table, out):
    out[:] = 0.0


def first_come(jobs, cores):
    """All cores to the earliest; a function that returns, so it runs interpreted."""
    widths = np.zeros(len(jobs))
    widths[0] = cores
    return widths


def all_to_first(jobs, cores, table, out):
    """The same as a rule that compiles."""
    for j in range(jobs.shape[0]):
        out[j] = 0.0
    out[0] = cores


def raises(jobs, cores):
    raise ZeroDivisionError("my own mistake")


@pytest.mark.parametrize(
    ("policy", "words"),
    [(too_many, "more than 8 cores"), (not_numbers, "NaN"), (negative, "negative")],
)
def test_policies_that_break_the_rules(policy, words):
    """A rule that over-allocates, returns NaN or less than nothing: policy, state, numbers are named."""
    with pytest.raises(PolicyError, match=words) as caught:
        simulate("paper", 8, policy, load=0.5, **FEW)
    text = caught.value.sentence
    assert policy.__name__ in text
    assert "of class-1" in text
    assert "cores " in text.rpartition(":")[2]
    assert "time" in text


def serve_no_class(counts, cores, table, out):
    out[:] = 0.0


def over_by_count(counts, cores, table, out):
    out[:] = cores


def undefined(counts, cores, table, out):
    out[:] = np.nan


def below_zero(counts, cores, table, out):
    out[:] = -1.0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (serve_no_class, "serves no job"),
        (over_by_count, "more than 8 cores"),
        (undefined, "NaN"),
        (below_zero, "negative"),
    ],
)
def test_class_rules_that_break_the_rules(rule, words):
    """The same for class rules, interpreted."""
    made = ClassProgram(rule, encode(PAPER.speedups), SHARE)
    jobs = Chunk(np.array([0.0, 0.1, 0.2]), np.array([0, 1, 1]), np.ones(3))
    with pytest.raises(PolicyError, match=words) as caught:
        departures(PAPER, 8, made, jobs, interpreted=True)
    assert "class-2" in caught.value.sentence
    assert "cores per job" in caught.value.sentence


def test_a_policy_that_serves_no_job():
    """Jobs that are never served are an error once no arrival can change it."""
    jobs = Chunk(np.array([0.0, 0.1]), np.array([0, 1]), np.ones(2))
    with pytest.raises(PolicyError, match="serves no job") as caught:
        departures(PAPER, 8, program(Policy.of(serve_none), PAPER, 8), jobs, interpreted=True)
    assert "1 of class-1, 1 of class-2" in caught.value.sentence


def test_a_policy_that_raises():
    """A user's exception arrives with its own type or as its cause, never as a bare number of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPolicyWarning)
        with pytest.raises(Exception, match="my own mistake") as caught:
            simulate("paper", 8, raises, load=0.5, **FEW)
    error = caught.value
    assert isinstance(error, ZeroDivisionError) or isinstance(error.__cause__, ZeroDivisionError)
    assert "raises" in str(error) or isinstance(error, ZeroDivisionError)


def test_bare_functions():
    """A function compiles if it can, warns and runs interpreted if it cannot, with the same numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowPolicyWarning)
        compiled = simulate("paper", 8, all_to_first, load=0.1, jobs=1500)
    with pytest.warns(SlowPolicyWarning, match="first_come.*interpreted"):
        interpreted = simulate("paper", 8, first_come, load=0.1, jobs=1500)
    assert compiled.cost == interpreted.cost
    assert (compiled.policy, interpreted.policy) == ("all_to_first", "first_come")


@dataclass(frozen=True)
class OnlyAllocates(Policy):
    """A policy of a user's own that has no program."""

    def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002
        out = np.zeros(len(jobs))
        out[jobs.order[: int(cores)]] = 1.0
        return Allocation(out, None)


def test_a_policy_that_only_allocates():
    """It is asked at every event, and agrees with the compiled rule of the same policy."""
    mine = simulate("paper", 8, OnlyAllocates(), load=0.5, **FEW)
    theirs = simulate("paper", 8, "fcfs", load=0.5, **FEW)
    assert mine.cost.mean == pytest.approx(theirs.cost.mean, rel=1e-12)


# --- Ctrl-C, replications, comparison --------------------------------------------------------------------


def test_interrupted():
    """Ctrl-C while the progress is reported returns what was done so far, labelled."""

    def progress(done, _total):
        if done >= 700:
            raise KeyboardInterrupt

    result = simulate("paper", 8, "equi", load=0.25, progress=progress, **FEW)
    assert result.status == "interrupted"
    assert 700 <= result.jobs < FEW["jobs"]
    assert "interrupted" in str(result)
    full = simulate("paper", 8, "equi", load=0.25, **FEW)
    seen = result.records[0].size
    assert result.records[0].response.tolist() == full.records[0].response[:seen].tolist()


def test_progress():
    """Progress goes up to the jobs asked for."""
    told = []
    simulate("paper", 8, "equi", load=0.25, progress=lambda *numbers: told.append(numbers), **FEW)
    assert told == sorted(told)
    assert told[-1] == (FEW["jobs"], FEW["jobs"])


def numbers(result):
    return result.cost, result.seeds, result.jobs, [record.response.tolist() for record in result.records]


def test_spreading_changes_nothing():
    """Replications are the runs of following seeds, whatever carries them out."""
    options = {"load": 0.25, **FEW}
    single = [simulate("paper", 8, "equi", seed=4 + r, **options) for r in range(3)]
    spread = numbers(simulate("paper", 8, "equi", seed=4, replications=3, **options))
    assert spread[1:] == ((4, 5, 6), 4500, [one.records[0].response.tolist() for one in single])
    with ThreadPoolExecutor(2) as threads:
        assert (
            numbers(simulate("paper", 8, "equi", seed=4, replications=3, executor=threads, **options))
            == spread
        )
    with ProcessPoolExecutor(2) as processes:
        assert (
            numbers(simulate("paper", 8, "equi", seed=4, replications=3, executor=processes, **options))
            == spread
        )


def test_comparison_on_the_same_jobs():
    """All policies see the same arrivals, and differences are those of the results."""
    found = compare("paper", [8, 16], ["wham", "equi", "greedy"], load=0.4, seed=2, **FEW)
    assert [(r.cores, r.policy) for r in found.results] == [
        (n, p) for n in (8.0, 16.0) for p in ("wham", "equi", "greedy")
    ]
    for first in (0, 3):
        runs = [r.records[0] for r in found.results[first : first + 3]]
        for run in runs[1:]:
            assert run.arrivals.tolist() == runs[0].arrivals.tolist()
            np.testing.assert_allclose(run.duration, runs[0].duration, rtol=1e-9)
    by_name = {(r.cores, r.policy): r.cost for r in found.results}
    assert len(found.differences) == 4
    for d in found.differences:
        assert d.baseline == "wham"
        assert d.low <= d.mean <= d.high
        gap = by_name[d.cores, d.policy].mean - by_name[d.cores, "wham"].mean
        spread = by_name[d.cores, d.policy].half_width + by_name[d.cores, "wham"].half_width
        assert abs(d.mean - gap) < spread
        assert d.high - d.low < spread
    alone = simulate("paper", 16, "equi", load=0.4, seed=2, **FEW)
    assert alone.cost == by_name[16.0, "equi"]


def test_comparison_of_nothing():
    with pytest.raises(MalleableError, match="nothing to compare"):
        compare("paper", 8, [])
    with pytest.raises(MalleableError):
        compare("paper", 8, ["wham"], baseline="equi", **FEW)


def test_reached():
    """A precision asked for and met ends the run before its last job."""
    result = simulate("paper", 8, "equi", load=0.25, precision=0.2, interpreted=True, jobs=4000)
    assert result.precision_reached
    assert reached(result.cost, 0.2)
    assert result.status == Status.COMPLETE
