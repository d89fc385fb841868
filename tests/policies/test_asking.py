"""Asked for one moment, every policy gives what the simulator's program gives at that moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import malleable
from malleable import catalog
from malleable.contracts import ANY, Allocation, Need, Policy
from malleable.engine.machines import machine
from malleable.engine.rule_interface import COUNTS, FIFO, HELD, INDEX, JOBS, POOLS, SHARE
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.policies.base import ClassProgram, Program, encode, job_rows
from malleable.policies.base.asking import allocation, by_program, program_of, simulated
from malleable.policies.equi import Equi
from malleable.policies.wham import Wham
from malleable.policies.wham_fitted import WhamFitted
from malleable.simulation import simulate
from malleable.sources import Chunk
from support import strategies as gen

POLICIES = (
    *sorted(name.replace("_", "-") for name in catalog.kinds("policies")),
    *(
        "greedy:weight=mu",
        "greedy:weight=c",
        "greedy:weight=cmu",
        "greedy:weight=c/x",
        "greedy-star:weight=c",
    ),
    *("fixed-width:widths=3,shared=false", "wham-discounted:alpha=0.3", "clearing:price=0.2"),
    *("pollux:period=0", "sia:period=0", "whittle:discount=1"),
)
FITTED, POOLED = (
    {"wham-fitted", "wham-improved"},
    {"fw-cam", "fw-cam-repaired", "fixed-width:widths=3,shared=false"},
)
POWER, AMDAHL = {"kind": "power", "exponent": 0.5}, {"kind": "amdahl", "sequential": 0.2}
MACHINES = {
    "plain": ({}, {}, {}),
    "restricted": ({"widths": "powers-of-two"}, {"widths": "whole"}, {"widths": [1, 3, 8]}),
    "rigid beside malleable": ({"shape": "rigid", "width": 4}, {}, {"resize": {"pause": 0.1}}),
}


def situation(name, kind):
    """A policy, three classes on such a machine, and its cores: more where each class has its own."""
    if name in FITTED and kind != "plain":
        pytest.skip("a fit to these takes long; `test_legal_allocation` has one beside a rigid job")
    rows = [
        gen.job_class("abc"[i], 1.0, 1.0 + i, speedup, 3.0 - i) | keys
        for i, (speedup, keys) in enumerate(zip((POWER, AMDAHL, POWER), MACHINES[kind], strict=True))
    ]
    cores, load = (64.0, 0.25) if name in POOLED else (12.0, 0.7)
    return Policy.of(name), Workload.from_dict({"classes": rows}).at(cores, load), cores


def some_jobs(made, count, **columns):
    """Jobs of random classes and sizes."""
    rng = np.random.default_rng(count)
    return Jobs.of(made, rng.integers(0, 3, count), rng.uniform(2.0, 9.0, count), **columns)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("kind", MACHINES)
def test_the_moments_of_a_run(name, kind):
    """Jobs that arrive together hold, after each arrival, the cores that `allocate` gives them."""
    policy, made, cores = situation(name, kind)
    program = simulated(policy, made, cores)
    if program.period > 0.0:
        pytest.skip("asked in rounds, not at arrivals")
    jobs, held = some_jobs(made, 15), np.zeros(0)
    runner = machine(made, cores, program, interpreted=True)
    chunk = Chunk(np.zeros(15), jobs.class_index.astype(np.int64), jobs.remaining)
    for count in range(1, 16):
        runner.feed(chunk, count - 1, count)
        now = jobs.only(np.arange(count))
        held = malleable.allocate(made, replace(now, held=np.append(held, 0.0)), cores, policy).cores
        assert runner.snapshot().cores_in_use == pytest.approx(held.sum(), rel=1e-9, abs=1e-9)
        if program.sees == JOBS:
            np.testing.assert_allclose(runner.jobs[:count, HELD], held, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("part", [5.0, 7.5])
def test_a_part_of_a_machine(name, kind, part):
    """On some of the cores it is the program for all of them, whatever the machine demands."""
    policy, made, cores = situation(name, kind)
    program = simulated(policy, made, cores, plain=False)
    assert program.sees == JOBS
    for count in (2, 5, 9, 14):
        jobs, wanted = some_jobs(made, count), np.zeros(count)
        program.rule(job_rows(jobs, jobs.class_index), part, program.table.copy(), wanted)
        found = allocation(policy, jobs, part, cores).cores
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
def test_a_rule_on_counts_and_the_one_on_jobs(name):
    """While all jobs have a core, a rule on class counts gives each class what its jobs get one by one."""
    policy, made, cores = situation(name, "plain")
    program = policy.program(made, cores)
    if program.sees != COUNTS or program.discipline == POOLS:
        pytest.skip("no such rule")
    for count in (1, 4, 9, 11):
        jobs, widths = some_jobs(made, count), np.zeros(3)
        counts = np.bincount(jobs.class_index, minlength=3).astype(float)
        program.rule(counts, cores, program.table.copy(), widths)
        found = policy.allocate(jobs, cores).cores
        np.testing.assert_allclose(found, widths[jobs.class_index], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
def test_speedups_that_jobs_bring(name):
    """Jobs that bring the speedup of their class get what they get without; the classes that arrive count."""
    policy, made, cores = situation(name, "plain")
    if isinstance(policy.in_effect(made, cores), WhamFitted):
        pytest.skip("it is `wham-discounted` then: its fit does not know these jobs")
    for integer in (False, True):
        plain = some_jobs(made, 7)
        own = some_jobs(made, 7, speedups=[made.speedups[i] for i in plain.class_index])
        # Those who brought something share no core in time, so none may be shared here.
        wanted = malleable.allocate(made, plain, cores, policy, integer=integer).cores
        if ((wanted > 0.0) & (wanted < 1.0)).any() and name == "wham-improved":
            continue
        for ask in (
            policy.allocate,
            lambda jobs, n, **more: malleable.allocate(made, jobs, n, policy, **more),
        ):
            found = ask(own, cores, integer=integer).cores
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


# --- policies of users --------------------------------------------------------------------------------------


def equal(counts, cores, table, out):
    """The cores divided equally."""
    for i in range(len(counts)):
        out[i] = cores / counts.sum()


def widths(counts, cores, table, out):
    """Those of the table."""
    out[:] = table


@dataclass(frozen=True)
class OnCounts(Policy):
    """A rule on class counts, and nothing else; `need` may be left out."""

    discipline: int = SHARE
    sharing: ClassVar[bool] = True

    def program(self, workload, cores):  # noqa: ARG002 - for any number of them
        slots = (2,) * len(workload.classes) if self.discipline == POOLS else ()
        table = np.full(len(workload.classes), 1.25) if slots else np.zeros(1)
        return ClassProgram(widths if slots else equal, table, self.discipline, slots)


@pytest.mark.parametrize("discipline", [SHARE, INDEX, FIFO, POOLS])
def test_a_rule_on_counts_is_all_that_a_policy_needs(discipline):
    """`allocate` gives what the run gives: equal shares, one core each by c/x or by arrival, or slots."""
    made = situation("equi", "plain")[1]
    policy = OnCounts(discipline)
    assert program_of(policy, made, 8.0, Need(by_job=True)).sees == COUNTS
    few = malleable.allocate(made, some_jobs(made, 4), 8.0, policy).cores
    assert discipline == POOLS or few.tolist() == [2.0] * 4
    jobs = some_jobs(made, 13)
    out = malleable.allocate(made, jobs, 8.0, policy).cores
    if discipline == SHARE:
        np.testing.assert_allclose(out, 8.0 / 13.0)
    elif discipline == POOLS:
        for i in range(3):
            mine = np.flatnonzero(jobs.class_index == i)
            assert out[mine].tolist() == [1.25] * min(len(mine), 2) + [0.0] * max(len(mine) - 2, 0)
    else:
        first = np.argsort(-jobs.weight / jobs.remaining)[:8] if discipline == INDEX else np.arange(8)
        assert np.flatnonzero(out).tolist() == sorted(first)
        assert out.sum() == 8.0


def test_a_rule_on_counts_on_a_machine_that_demands_more():
    """It runs job by job there, compiled, and costs what EQUI costs on jobs that use whatever they get."""
    made = situation("equi", "rigid beside malleable")[1]
    options = {"jobs": 4000, "replications": 1}
    found, wanted = (simulate(made, 12, policy, **options) for policy in (OnCounts(), "equi"))
    assert found.cost.mean == pytest.approx(wanted.cost.mean, rel=1e-12)


@dataclass(frozen=True)
class Both(OnCounts):
    """An `allocate` of its own beside the rule, which may ask for what the rule gives."""

    def allocate(self, jobs, cores, *, integer=False):
        found = super().allocate(jobs, cores, integer=integer)
        return Allocation(found.cores[::-1], 3.0)


def test_an_allocate_of_its_own():
    """It decides at a moment, and at every event of a run that takes more than counts."""
    made = situation("equi", "plain")[1]
    jobs = some_jobs(made, 3)
    assert malleable.allocate(made, jobs, 12.0, Both(POOLS)).price == 3.0
    assert allocation(Both(), jobs, 4.0, 12.0).price == 3.0
    assert by_program(Both(), jobs, 4.0, 12.0).price is None
    assert simulated(Both(), made, 12.0).rule is equal
    assert hasattr(simulated(Both(), made, 12.0, plain=False).rule, "only_python")


def test_needs_are_told_to_those_who_want_to_know():
    """A subclass of one of ours may take what is needed, or leave it out; both run."""

    @dataclass(frozen=True)
    class Shorter(Wham):
        def program(self, workload, cores):  # noqa: ARG002 - for any number of them
            return Program(fewest, encode(workload.speedups))

    @dataclass(frozen=True)
    class Longer(Equi):
        def program(self, workload, cores, need=ANY):
            asked.append(need)
            return super().program(workload, cores, need)

    asked, made = [], paper_workload(16)
    jobs = Jobs.of(made, [0, 1], [1.0, 2.0])
    assert Shorter().allocate(jobs, 16).cores.tolist() == [16.0, 0.0]
    assert Longer().allocate(jobs, 16, integer=True).cores.tolist() == [8.0, 8.0]
    assert asked == [Need(by_job=True, whole=True)]


def fewest(jobs, cores, table, out):
    """All for the first."""
    out[0] = cores
