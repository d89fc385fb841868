"""Simulated costs against exact ones: queues, exact chains, FW-CAM's plan, heSRPT's optimum."""

from __future__ import annotations

import numpy as np
import pytest

from malleable import simulate
from malleable.contracts import Policy
from malleable.engine.run import departures
from malleable.model import JobClass, Workload, paper_workload
from malleable.policies.hesrpt import total_weighted_flow
from malleable.simulation import program
from malleable.sources import Chunk
from malleable.theory.fluid import Fluid
from malleable.theory.fw_cam import plan
from malleable.theory.queues import erlang_c, mgc_response_time
from malleable.theory.refined_mean_field import refine

DETERMINISTIC = {"kind": "deterministic", "value": 1.0}
EXPONENTIAL = {"kind": "exponential", "mean": 1.0}
H2 = {"kind": "hyperexponential", "probabilities": [0.1, 0.9], "rates": [0.25, 1.5]}


def one_class(size, rate=1.0, speedup=None):
    chosen = speedup or {"kind": "power", "exponent": 0.5}
    return Workload("one", (JobClass("only", {"kind": "poisson", "rate": rate}, size, chosen),))


def covers(result, exact, precision):
    """The exact cost lies inside the interval, and the interval is short enough to mean something."""
    assert result.cost.relative_half_width <= precision
    assert result.cost.low <= exact <= result.cost.high


# --- queues ----------------------------------------------------------------------------------------------


def test_erlang_c():
    """FCFS with one core each is M/M/8."""
    exact = 1.0 + erlang_c(8, 5.6) / (8 - 5.6)
    result = simulate(one_class(EXPONENTIAL), 8, "fcfs", load=0.7, jobs=400_000, seed=1, confidence=0.999)
    covers(result, exact, 0.02)
    assert result.classes[0].present == pytest.approx(5.6 * exact, rel=0.02)


@pytest.mark.parametrize("size", [DETERMINISTIC, H2], ids=["deterministic", "hyperexponential"])
def test_processor_sharing_is_insensitive(size):
    """EQUI on one core is M/G/1 processor sharing, E[T] = E[X]/(1 − ρ) whatever the law of the sizes."""
    workload = one_class(size)
    mean = workload.mean_sizes[0]
    result = simulate(workload, 1, "equi", load=0.6, jobs=1_000_000, seed=2, confidence=0.999)
    covers(result, mean / 0.4, 0.03)
    # Each unit of work takes the same time on average, so the mean slowdown is 1/(1 − ρ) too.
    assert result.classes[0].mean_slowdown == pytest.approx(2.5, rel=0.03)


@pytest.mark.parametrize("size", [DETERMINISTIC, EXPONENTIAL, H2], ids=["deterministic", "exponential", "h2"])
def test_pollaczek_khinchine(size):
    """FCFS on one core is M/G/1."""
    workload = one_class(size).at(1, 0.6)
    law = workload.classes[0].size
    exact = mgc_response_time(workload.rates[0], law, 1).response_time
    assert exact == pytest.approx(law.mean + workload.rates[0] * law.moment(2) / (2 * 0.4))
    covers(simulate(workload, 1, "fcfs", jobs=600_000, seed=3, confidence=0.999), exact, 0.05)


@pytest.mark.parametrize("name", ["fw-cam", "fw-cam-repaired"])
def test_fw_cam_against_its_exact_cost(name):
    """Each class is a queue of its own: the cost is that of M/PH/c, .33994747 for FW-CAM at n = 64."""
    workload = paper_workload(64)
    exact = plan(workload, 64, 0.8, repaired=name == "fw-cam-repaired")
    if name == "fw-cam":
        assert exact.cost() == pytest.approx(0.33994747, abs=1e-8)
    result = simulate(workload, 64, f"{name}:beta=0.8", jobs=2_000_000, seed=4, confidence=0.999)
    covers(result, exact.cost(), 0.02)
    for found, expected in zip(result.classes, exact.response_times(), strict=True):
        assert found.response_time.mean == pytest.approx(expected, rel=0.03)


def test_littles_law_and_utilisation():
    """Jobs present = rate × response time in each class, and cores in use = effective load, at any policy."""
    for name in ("wham", "equi", "fw-cam", "hesrpt"):
        workload = paper_workload(64)
        result = simulate(workload, 64, name, jobs=300_000, seed=5)
        for rate, found in zip(workload.rates, result.classes, strict=True):
            assert abs(found.little) < 1e-3
            assert found.present == pytest.approx(rate * found.response_time.mean, rel=0.02)
        assert result.utilisation == pytest.approx(result.effective_load, rel=0.01)
        if name == "fw-cam":
            pools = plan(workload, 64, 0.8).pools
            assert result.effective_load == pytest.approx(
                sum(p.effective_load for p in pools) / 64, rel=0.005
            )
        assert 0.25 < result.utilisation <= 1.0
        assert result.gap > 0.0


def test_hesrpt_closed_form():
    """With all jobs at time 0 and one k^p, heSRPT's total weighted flow is its closed form to 1e-9."""
    rng = np.random.default_rng(6)
    for exponent in (0.2, 0.5, 0.8):
        # Few jobs on very many cores, so that no share falls below one core.
        workload = one_class(EXPONENTIAL, speedup={"kind": "power", "exponent": exponent})
        count, cores = 7, 10**9
        sizes = np.sort(rng.exponential(1.0, count))[::-1].copy()
        jobs = Chunk(np.zeros(count), np.zeros(count, np.int64), sizes)
        made = program(Policy.of(f"hesrpt:exponent={exponent}"), workload, cores)
        flow = departures(workload, cores, made, jobs, interpreted=True).sum()
        assert flow == pytest.approx(total_weighted_flow(sizes, np.ones(count), exponent, cores), rel=1e-9)


# --- slow: the paper's workload --------------------------------------------------------------------------

EXACT = {
    (16, "wham"): 0.2400331,
    (16, "wham-integer"): 0.2402367,
    (16, "greedy"): 0.2414230,
    (16, "equi"): 0.2440912,
    (128, "wham"): 0.1695505,
    (128, "wham-integer"): 0.1696036,
    (128, "greedy"): 0.1711420,
    (128, "equi"): 0.1845563,
}


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "name"), EXACT)
def test_exact_chains(cores, name):
    """MODEL.md §6: the exact cost lies in the 99.9 % interval at a half-width of at most 0.1 %.

    The chain counts jobs by class and phase, so it fits an integer WHAM that is blind to sizes: the odd core
    of a class goes to its earliest job.
    """
    result = simulate(
        "paper", cores, name, load=0.25, precision=0.001, jobs=300_000_000, seed=7, confidence=0.999
    )
    assert result.precision_reached
    covers(result, EXACT[cores, name], 0.001)


def balanced(mean, scv):
    """Inter-arrival times with a given squared coefficient of variation: 0, 1, or more than 1."""
    if scv == 0.0:
        return {"kind": "deterministic", "value": mean}
    if scv == 1.0:
        return {"kind": "exponential", "mean": mean}
    p = 0.5 * (1.0 + np.sqrt((scv - 1.0) / (scv + 1.0)))
    return {
        "kind": "hyperexponential",
        "probabilities": [p, 1.0 - p],
        "rates": [2.0 * p / mean, 2.0 * (1.0 - p) / mean],
    }


@pytest.mark.slow
@pytest.mark.parametrize("scv", [0.0, 1.0, 4.0])
def test_refined_mean_field(scv):
    """At n = 256 the refined mean field is off by its own order, some n⁻², whatever the arrivals."""
    paper = paper_workload(256)
    workload = Workload(
        "renewal",
        tuple(
            JobClass(
                c.name,
                {"kind": "renewal", "interval": balanced(1.0 / c.arrivals.rate, scv)},
                c.size,
                c.speedup,
                c.holding_cost,
            )
            for c in paper.classes
        ),
    )
    fluid = Fluid(workload, Policy.of("wham"), 256)
    predicted = refine(fluid, fluid.fixed_point())
    assert predicted.coefficient == pytest.approx(0.944270 + 0.480893 * scv, abs=1e-4)
    result = simulate(workload, 256, "wham", precision=0.0005, jobs=300_000_000, seed=8, confidence=0.999)
    assert result.precision_reached
    error = 25.0 * (1.0 + scv) / 256**2
    assert abs(result.cost.mean - predicted.cost) <= result.cost.half_width + error


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "jobs"), [(16, 20_000), (128, 100_000)])
def test_intervals_are_honest(cores, jobs):
    """Over 200 short independent runs, nominal 95 % intervals cover the exact cost 92–98 % of the time."""
    exact = EXACT[cores, "wham"]
    workload = paper_workload(cores)
    intervals = [simulate(workload, cores, "wham", jobs=jobs, seed=1000 + r).cost for r in range(200)]
    hits = sum(one.low <= exact <= one.high for one in intervals)
    assert 184 <= hits <= 196
