"""What a result says of its own shortcomings: too short, too wild, below what is possible."""

from __future__ import annotations

import json
import math
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from malleable import compare, simulate
from malleable.engine.enforcement import pool_loads
from malleable.engine.rule_interface import POOLS, ClassProgram
from malleable.model import JobClass, Workload, paper_workload
from malleable.paper.experiments.shared.fw_cam_pools import planned
from malleable.results import Comparison, Result, Status, summarise
from malleable.simulation import DEFAULT_JOBS, Settings, default_jobs
from malleable.statistics.intervals import bent, skewness
from malleable.statistics.run_length import jobs_for_squares, length, relaxation_jobs
from support.shell import malleable
from support.synthetic import records, single_server, workload

pytestmark = pytest.mark.filterwarnings("ignore::malleable.model.ConditionWarning")
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "bench_coverage.py"


def one_class(size, rate=1.0, speedup=None):
    job = JobClass("only", {"kind": "poisson", "rate": rate}, size,
                   speedup or PLAIN)  # fmt: skip
    return Workload("only", (job,))


EXPONENTIAL = {"kind": "exponential", "rate": 1.0}
PLAIN = {"kind": "power", "exponent": 0.5}
PARETO = {"kind": "pareto", "shape": 1.01, "mean": 1.0}
WEIBULL = {"kind": "weibull", "shape": 0.05, "mean": 1.0}


def said(result, words):
    return any(words in note for note in result.notes)


class TestRelaxation:
    """How long a run must be, before it starts."""

    @pytest.mark.parametrize("load", [0.5, 0.9, 0.99])
    @pytest.mark.parametrize("cores", [1, 64])
    def test_exponential(self, load, cores):
        """M/M/n relaxes in 1/(1 − √ρ)² services in all, on one core or on many."""
        model = one_class(EXPONENTIAL).at(cores, load)
        assert relaxation_jobs(model, cores) == pytest.approx((1.0 - load**0.5) ** -2)

    def test_arrivals_that_never_come(self):
        """A class whose next arrival is infinitely far away counts nothing, and is no error."""
        common = one_class(EXPONENTIAL).classes[0]
        never = JobClass("never", {"kind": "poisson", "rate": 1e-310}, EXPONENTIAL, common.speedup)
        both = Workload("both", (common, never))
        assert relaxation_jobs(both, 4) == pytest.approx(relaxation_jobs(Workload("one", (common,)), 4))

    def test_noise_beyond_all_numbers(self):
        """Where the spread of sizes is no number, no run is long enough."""
        wild = JobClass("wild", {"kind": "poisson", "rate": 1e-250},
                        {"kind": "lognormal", "mean": 1e200, "sigma": 20.0}, PLAIN)  # fmt: skip
        model = Workload("two", (one_class(EXPONENTIAL).classes[0], wild))
        assert relaxation_jobs(model, 4) == math.inf

    def test_variability(self):
        """Sizes of squared variation b take (1 + b)/2 times as long; constant sizes half as long."""
        plain = relaxation_jobs(one_class(EXPONENTIAL).at(1, 0.8), 1)
        for size, factor in (({"kind": "deterministic", "value": 1.0}, 0.5), (WEIBULL, None)):
            model = one_class(size).at(1, 0.8)
            expected = factor or (1.0 + model.classes[0].size.scv) / 2.0
            assert relaxation_jobs(model, 1) == pytest.approx(expected * plain)

    def test_splitting_a_class(self):
        """Two equal Poisson classes are one class."""
        whole, halves = workload((1.0,)), workload((0.4, 0.6))
        assert relaxation_jobs(halves, 1) == pytest.approx(relaxation_jobs(whole, 1))

    def test_full_load(self):
        """At a load of 1 nothing relaxes, and no run is long enough."""
        model = one_class(EXPONENTIAL).at(2, 1.0)
        assert relaxation_jobs(model, 2) == math.inf
        assert length(model, 2, 1.0, 1e9, 1).refused

    def test_replications_must_be_long_too(self):
        """Many replications that are each far too short stay too short."""
        model = one_class(EXPONENTIAL).at(1, 0.95)
        assert length(model, 1, 1.0, 1e6, 1).share > 1.0
        assert length(model, 1, 1.0, 1e6, 1000).share < 0.1

    def test_pools(self):
        """A class with a pool of its own relaxes as M/M/1 of the pool's load; the slowest counts."""
        classes = [
            JobClass(name, {"kind": "poisson", "rate": rate}, EXPONENTIAL, {"kind": "power", "exponent": 0.5})
            for name, rate in (("often", 3.0), ("seldom", 1.0))
        ]
        model = Workload("two", tuple(classes))
        assert relaxation_jobs(model, 64, (0.5, 0.9)) == pytest.approx(4.0 * (1.0 - 0.9**0.5) ** -2)
        assert relaxation_jobs(model, 64, (0.95, 0.1)) == pytest.approx(4.0 / 3.0 * (1.0 - 0.95**0.5) ** -2)
        assert relaxation_jobs(model, 64, (0.0, 0.0)) == pytest.approx(4.0)
        assert relaxation_jobs(model, 64, (1.0, 0.1)) == math.inf

    def test_a_pool_without_slots(self):
        """It is full without end; others have the work that comes over what their slots can do."""

        def widths(counts, cores, table, out):
            out[:] = 2.0

        made = ClassProgram(widths, np.zeros(1), POOLS, (4, 0))
        loads = pool_loads(made, workload((1.0, 1.0)), 8.0)
        assert loads == pytest.approx((0.5 / (4.0 * 2.0**0.5), math.inf))

    def test_a_pool_that_is_nearly_full(self):
        """FW-CAM on a machine at load .25 may have a pool at .97: runs must be as long as that pool needs.

        Its load is what Erlang C is asked about, and what the JSON and a merged result have.
        """
        result = simulate("paper", 32, "fw-cam:beta=0.76", load=0.25, jobs=60_000, seed=1)
        pools = planned(32, 0.76, 0.25, 10**6)["pools"]
        assert result.pool_loads == pytest.approx([pool["utilisation"] for pool in pools], rel=1e-9)
        assert said(result, "too short")
        assert not said(simulate("paper", 32, "wham", load=0.25, jobs=60_000, seed=1), "too short")
        again = Result.from_dict(json.loads(json.dumps(result.document())), result.records)
        assert again == result
        assert Result.merge([again]).pool_loads == result.pool_loads

    def test_squares(self):
        """Exponential sizes show their squares at once (κ = 6), a Pareto tail of shape 2.2 never."""
        assert jobs_for_squares(one_class(EXPONENTIAL)) == pytest.approx(600.0)
        assert jobs_for_squares(one_class({"kind": "pareto", "shape": 2.2, "mean": 1.0})) == math.inf


def test_the_skewness_correction():
    """Without skewness the quantile stays; with it both ends move up, as Hall's formula has it."""
    assert bent(2.0, 0.0) == 2.0
    assert bent(2.0, 1e-6) == pytest.approx(2.0, rel=1e-4)
    assert bent(2.0, 0.1) == pytest.approx(((1.0 + 0.6 * 1.9) ** (1 / 3) - 1.0) / 0.2)
    assert bent(2.0, 0.1) < 2.0 < -bent(-2.0, 0.1)
    values = np.random.default_rng(1).exponential(size=200_000)
    assert skewness(values) == pytest.approx(2.0, rel=0.1)
    assert skewness(np.ones(10)) == 0.0


class TestShortRuns:
    """Point 7: intervals near load 1 are honest, or there is none."""

    def test_refused(self):
        """M/M/1 at load .99 over 10⁵ jobs, 2.5 relaxation times: no interval, in words and in JSON."""
        found = simulate(one_class(EXPONENTIAL), 1, "fcfs", load=0.99, jobs=100_000)
        assert said(found, "too short for an interval")
        document = json.loads(json.dumps(found.to_dict()))
        assert (document["cost"]["low"], document["cost"]["high"]) == (None, None)
        assert document["classes"][0]["response_time"]["low"] is None
        assert document["cost"]["mean"] > 0.0
        assert Result.from_dict(json.loads(json.dumps(found.document()))).to_dict() == document

    def test_near_full_load(self):
        """The paper's classes on 64 cores at load .9999 with a million jobs are not known to ± 14 %."""
        found = simulate("paper", 64, "wham", load=0.9999, jobs=50_000)
        assert said(found, "relaxation times")
        assert found.cost.half_width == math.inf

    def test_noted(self):
        """At load .95 and 10⁵ jobs, 64 relaxation times, there is an interval with a note."""
        found = simulate(one_class(EXPONENTIAL), 1, "fcfs", load=0.95, jobs=100_000)
        assert said(found, "the run is short")
        assert math.isfinite(found.cost.half_width)

    def test_differences(self):
        """What has no interval has no paired difference with one, either."""
        found = compare(one_class(EXPONENTIAL), 1, ["fcfs", "equi"], load=0.99, jobs=50_000)
        assert isinstance(found, Comparison)
        assert found.differences[0].to_dict()["low"] is None
        assert not found.differences[0].significant

    def test_precision_goes_on(self):
        """A run until a precision does not stop on an interval that it cannot have."""
        found = simulate(one_class(EXPONENTIAL), 1, "fcfs", load=0.95, precision=0.2, jobs=10**6)
        assert found.jobs >= 0.1 * 100 * relaxation_jobs(found.workload, 1)

    @pytest.mark.parametrize(
        ("cores", "load", "jobs"), [(64, 0.25, 100_000), (64, 0.8, 100_000), (16, 0.5, 100_000)]
    )
    def test_healthy_runs_have_no_note(self, cores, load, jobs):
        """Runs that are long enough are not flooded with notes."""
        found = simulate("paper", cores, "wham", load=load, jobs=jobs)
        assert (found.notes, found.status) == ((), "complete")

    def test_long_runs_are_as_before(self):
        """From 1000 relaxation times on, intervals are plain ones with controls."""
        found = simulate("paper", 64, "wham", load=0.25, jobs=200_000)
        assert found.controls.used
        assert found.cost.high - found.cost.mean == pytest.approx(found.cost.mean - found.cost.low)

    def test_controls_that_leave_rare_events_are_not_used(self):
        """M/M/64 at load .7: sizes explain all but the rare waits, on which no interval can rest."""
        found = simulate(one_class(EXPONENTIAL), 64, "fcfs", load=0.7, jobs=100_000, seed=1000)
        assert not found.controls.used


class TestTails:
    """Point 6: what cannot be true says so."""

    @pytest.mark.parametrize("size", [PARETO, WEIBULL])
    @pytest.mark.parametrize("policy", ["wham", "fcfs"])
    def test_below_the_bound(self, size, policy):
        """Pareto sizes of shape 1.01 and Weibull sizes of shape .05 cost less than is possible: said so."""
        found = simulate(one_class(size), 8, policy, load=0.5, jobs=20_000)
        assert found.gap < 0.0
        assert said(found, "below the lower bound")
        assert said(found, "of the mean size")
        assert found.to_dict()["notes"] == list(found.notes)
        assert "below the bound" in str(found)

    def test_no_finite_variance(self):
        """A law without a second moment is named, in sizes and in inter-arrival times."""
        found = simulate(
            one_class({"kind": "pareto", "shape": 1.8, "mean": 1.0}), 8, "wham", load=0.5, jobs=5000
        )
        assert said(found, "sizes of only have no finite variance")
        gaps = {"kind": "renewal", "interval": {"kind": "pareto", "shape": 1.8, "mean": 1.0}}
        model = Workload("gaps", (JobClass("rare", gaps, EXPONENTIAL, {"kind": "power", "exponent": 0.5}),))
        assert said(
            simulate(model, 8, "wham", jobs=5000), "inter-arrival times of rare have no finite variance"
        )

    def test_blocking(self):
        """With sizes of infinite fourth moment, FCFS has a note and sharing has none."""
        model = one_class({"kind": "pareto", "shape": 2.2, "mean": 1.0}).at(1, 0.5)
        assert said(simulate(model, 1, "fcfs", jobs=200_000), "squares of sizes")
        assert not said(simulate(model, 1, "equi", jobs=200_000), "squares of sizes")

    def test_one_batch(self):
        """A long run whose variance comes from one batch says so."""
        times = np.ones(400)
        times[200:204] = 50.0
        model = workload(mean_sizes=[0.5])
        found = summarise([records(times)], workload=model, cores=1, policy="p", seed=0, jobs=40_000)
        assert said(found, "of the variance")

    def test_the_table(self):
        """The terminal shows the note beside the gap."""
        text = malleable("simulate", "paper", "-n", "8", "--load", ".9999", "--jobs", "3000").out
        assert "note: the run is too short for an interval" in " ".join(text.split())


class TestDefaultJobs:
    """The default number of jobs follows n, and a run that has not filled is not called unstable."""

    @pytest.mark.parametrize(("cores", "load"), [(1, 0.5), (64, 0.25), (16_384, 0.25), (10_000, 0.99)])
    def test_a_million(self, cores, load):
        """A million jobs where they suffice."""
        assert default_jobs(paper_workload(cores, load)) == DEFAULT_JOBS

    def test_more_cores_more_jobs(self):
        """Ten million cores at load .25 are given 30 times the 2.5 million jobs that one core each makes."""
        assert default_jobs(paper_workload(10**7, 0.25)) == pytest.approx(7.5e7, rel=1e-6)
        assert default_jobs(paper_workload(10**12, 0.25)) == 10**9

    def test_jobs_that_are_given_stay(self):
        """Only the default follows n."""
        assert simulate(paper_workload(10**6, 0.25), 10**6, "equi", jobs=1000).jobs == 1000
        assert Settings().most_jobs == DEFAULT_JOBS

    def test_too_short_is_not_unstable(self):
        """A million cores that 30,000 jobs have not filled are "too short", and the numbers say why."""
        found = simulate(paper_workload(10**6, 0.25), 10**6, "equi", jobs=30_000)
        assert (found.status, found.stable) == (Status.TOO_SHORT, True)
        assert said(found, "too short to have filled the system")
        assert "[too short]" in str(found)

    def test_growth_in_a_long_run_is_unstable(self):
        """A run that is long enough and still grows is called unstable as before."""
        run = single_server(np.random.default_rng(3), 20_000, 1.2)
        found = summarise(
            [run], workload=workload(mean_sizes=[0.5]), cores=1, policy="bad", seed=3, jobs=20_000
        )
        assert (found.status, found.stable) == (Status.UNSTABLE, False)


def coverage_study():
    spec = util.spec_from_file_location("bench_coverage", BENCHMARK)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("load", "jobs"),
    [(0.95, 10_000), (0.99, 100_000), (0.5, 10_000), pytest.param(0.7, 10_000, marks=pytest.mark.slow)],
)
def test_runs_without_a_note_cover(load, jobs):
    """M/M/1 where intervals used to cover 57 to 94 %: runs without a note cover ≥ 90 %, or there are none."""
    found = coverage_study().cover("fcfs", 1, "exponential", load, jobs, runs=100)
    assert not found.unnoted or found.coverage >= 0.9
    assert (found.unnoted == 0) == (load > 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "equi"])
@pytest.mark.parametrize("law", ["exponential", "hyperexponential", "lognormal", "pareto 2.2", "weibull"])
def test_coverage_over_a_grid(policy, law):
    """Over 200 runs of each load and length, runs without a note cover ≥ 90 %."""
    study = coverage_study()
    rows = [
        study.cover(policy, 1, law, load, jobs) for load in study.LOADS for jobs in (1000, 10_000, 100_000)
    ]
    assert all(row.coverage >= 0.9 for row in rows if row.unnoted >= 20)
    assert any(row.unnoted for row in rows) or (policy, law) in study.NEVER
