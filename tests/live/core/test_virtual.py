"""The live scheduler on a virtual clock: the simulator's completion times, and what delays change."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.legal_widths import legalise, set_aside
from malleable.engine.run import departures
from malleable.errors import InfeasibleError, UnstableError
from malleable.live.core.scheduler import Scheduler
from malleable.live.core.virtual import VirtualMachine
from malleable.model import ConditionWarning, Workload, paper_workload
from malleable.policies.base import asking
from malleable.simulation import program
from malleable.sources import Chunk
from support import machine_workloads as machines
from support import random_jobs as gen
from support import reference_simulator as reference

COUNT = 40
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))]
POLICIES = (
    *("wham", "wham-integer", "greedy", "greedy:weight=c/x", "equi"),
    *("srpt", "hesrpt", "fcfs", "easy", "fixed-width", "pollux:period=0.31", "sia:period=0.31"),
)


def on_whole_widths(workload):
    """The same workload with widths = "whole" for every class of any width."""
    document = workload.to_dict()
    for row in document["classes"]:
        if row.get("widths", "any") == "any" and row.get("shape", "malleable") == "malleable":
            row["widths"] = "whole"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload.from_dict(document)


def live_departures(workload, cores, policy, jobs, **options):
    scheduler = Scheduler(workload, cores, policy)
    found = VirtualMachine(scheduler, workload, **options).departures(jobs)
    assert not scheduler.problem
    assert scheduler.ended["finished"] == jobs.size
    return found


def both(name, workload, cores, jobs):
    try:
        made = program(Policy.of(name), workload, cores)
    except (InfeasibleError, UnstableError):
        pytest.skip("this policy has no plan for so few cores")
    return live_departures(workload, cores, name, jobs), departures(
        workload, cores, made, jobs, interpreted=True
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", POLICIES)
def test_the_simulators_times_on_whole_widths(name, seed):
    """Where every class has whole widths, live and simulated completion times agree to 1e-9."""
    one = gen.instance(seed, COUNT, most_cores=16)
    got, expected = both(name, on_whole_widths(one.workload), one.cores, one.jobs)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", POLICIES)
def test_the_simulators_times_on_machines_that_demand_more(name, seed):
    """Shapes, widths, pauses, lost work and quiet times: live is as the simulator, to 1e-9."""
    one = gen.instance(seed, COUNT, most_cores=16)
    workload = machines.demanding(np.random.default_rng([seed, 11]), one.workload, one.cores)
    workload = on_whole_widths(workload)
    got, expected = both(name, workload, one.cores, one.jobs)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["wham", "greedy", "equi", "wham-integer", "hell", "knee"])
def test_the_simulators_times_of_plain_jobs(name, seed):
    """Plain jobs on whole cores: as a simulation that asks the policy for whole cores at every event."""
    one = gen.instance(seed, COUNT, most_cores=16)
    policy = Policy.of(name)
    made = asking.asked_at_each_event(policy, one.workload, integer=True)
    expected = departures(one.workload, one.cores, made, one.jobs, interpreted=True)
    got = live_departures(one.workload, one.cores, name, one.jobs)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "load"),
    [("wham-integer", 0.9), ("wham", 0.9), ("greedy", 0.9), ("equi", 0.9), ("fw-cam", 0.4),
     ("fw-cam-repaired:beta=0.6", 0.6)],
)  # fmt: skip
def test_the_papers_workload(name, load):
    """100 jobs of the paper's workload on 32 cores leave when the simulator has them leave.

    For GREEDY it is the compiled one; that compiled and interpreted ones agree is for the engine's tests.
    FW-CAM has no plan at the load of the others. Another policy has them leave at other times.
    """
    workload = paper_workload().at(32, load)
    workload = workload if name == "wham-integer" else on_whole_widths(workload)
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.exponential(1.0 / workload.total_rate, 100))
    classes = rng.choice(3, 100, p=workload.rates / workload.total_rate)
    sizes = np.array([workload.classes[i].size.sample(rng, 1)[0] for i in classes])
    jobs = Chunk(times, classes.astype(np.int64), sizes)
    made = program(Policy.of(name), workload, 32)
    expected = departures(workload, 32, made, jobs, interpreted=name != "greedy")
    got = live_departures(workload, 32, name, jobs)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    other = live_departures(workload, 32, "fcfs", jobs)
    assert np.abs(other - got).max() > 0.01


@pytest.mark.parametrize("seed", range(4))
def test_the_naive_simulators_times(seed):
    """WHAM on whole widths leaves as the simulator of the tests has it, with no code of the engine."""
    one = gen.instance(seed, COUNT, most_cores=16)
    workload = on_whole_widths(one.workload)
    expected = reference.departures(Policy.of("wham"), workload, one.cores, *one.jobs)
    got = live_departures(workload, one.cores, "wham", one.jobs)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("policy", ["wham", "equi", "srpt", "fcfs"])
def test_delays_cost_time_but_never_cores(policy):
    """With answers that come late all jobs are done, later on the whole, and no core is granted twice."""
    one = gen.instance(3, COUNT, most_cores=16)
    most = []

    def handle(event, now):
        actions = scheduler.handle(event, now)
        most.append(sum(account.granted for account in scheduler.ledger.accounts.values()))
        assert not scheduler.refused
        return actions

    scheduler = Scheduler(one.workload, one.cores, policy)
    late = VirtualMachine(scheduler, one.workload, delay=0.05, handle=handle).departures(one.jobs)
    prompt = live_departures(one.workload, one.cores, policy, one.jobs)
    assert max(most) <= one.cores
    assert late.mean() > prompt.mean()


@pytest.mark.parametrize("name", ["wham", "equi", "fcfs"])
def test_machine_code_decides_alike(name):
    """A scheduler that loads its machine code gives the same times to the bit, on a demanding machine too."""
    one = gen.instance(4, COUNT, most_cores=16)
    workload = machines.demanding(np.random.default_rng([4, 11]), one.workload, one.cores)
    stage = list(asking._stage)
    interpreted = live_departures(workload, one.cores, name, one.jobs)
    scheduler = Scheduler(workload, one.cores, name)
    try:
        scheduler.load_machine_code()
        assert asking._stage != [set_aside, legalise]
        compiled = VirtualMachine(scheduler, workload).departures(one.jobs)
    finally:
        asking._stage[:] = stage
    assert compiled.tolist() == interpreted.tolist()
