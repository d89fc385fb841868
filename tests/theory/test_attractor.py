"""The theorem on the attractor: monotone rules keep the order of states; and its certificate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from malleable import api, catalog
from malleable.contracts import Policy
from malleable.engine.rule_interface import COUNTS, SHARE
from malleable.errors import UnsupportedError
from malleable.model import JobClass, Workload, paper_workload
from malleable.theory.attractor import trajectory
from malleable.theory.count_fluid import fluid_of
from malleable.theory.fluid import Fluid
from malleable.theory.meanfield import mean_field
from malleable.theory.monotonicity import asked, monotone
from support.fluid_scheme import random_systems, speeds, step, upper_state

MARKETS = ["wham", "greedy", "greedy-star", "equi", "wham-integer"]
PROVED = "the rule is monotone and its demand crosses the cores, so every trajectory is squeezed"


def four_classes(cores=12, load=0.7):
    """The mix on which `wham-improved` is another policy than WHAM."""
    rows = [({"kind": "power", "exponent": 0.4}, 0.4), ({"kind": "amdahl", "sequential": 0.1}, 3.0)]
    classes = tuple(
        JobClass(
            f"c{i}", {"kind": "poisson", "rate": 1.0}, {"kind": "exponential", "mean": 1.0}, speedup, cost
        )
        for i, (speedup, cost) in enumerate(rows)
    )
    return Workload("mix", classes).at(cores, load)


# --- the theorem -----------------------------------------------------------------------------------------


def check_order(count, seed):
    """Follow systems from the empty state, from a state in between and from an upper one."""
    rng = np.random.default_rng(seed)
    made = random_systems(rng, count)
    upper = upper_state(made, 2.0)
    states = [np.zeros_like(upper), upper * rng.random(upper.shape), upper]
    h, worst = 1e-3, 0.0
    for _ in range(160):
        counts = [z.sum(axis=2) for z in states]
        pace = [speeds(made, np.maximum(jobs, 1e-12)) for jobs in counts]
        following = [step(made, z, v, h) for z, v in zip(states, pace, strict=True)]
        after = [z.sum(axis=2) for z in following]
        for low, high in itertools.pairwise(after):
            worst = max(worst, float((low - high).max()))
        for slow, fast in itertools.pairwise(reversed(pace)):
            worst = max(worst, float((slow / fast - 1.0).max()))
        worst = max(worst, float((counts[0] - after[0]).max()), float((after[2] - counts[2]).max()))
        states, h = following, min(1.08 * h, 50.0)
    low, _, high = (z.sum(axis=2) for z in states)
    apart = np.abs(high - low).max(axis=1) / high.max(axis=1)
    return worst, apart


def test_order_and_monotonicity_of_random_systems():
    """More jobs stay more and slower at every moment; from empty counts only rise, from above they only fall.

    In steps of constant speeds this holds exactly, whatever their length; both ends meet at the fixed point.
    """
    worst, apart = check_order(120, 1)
    assert worst < 1e-10
    assert np.quantile(apart, 0.98) < 1e-3


@pytest.mark.slow
def test_order_and_monotonicity_of_ten_thousand_systems():
    """The same for 10⁴ systems: up to four classes, phase types, weights, three rules, ρ from .1 to .97."""
    for batch in range(10):
        worst, apart = check_order(1000, 100 + batch)
        assert worst < 1e-10
        assert np.quantile(apart, 0.98) < 1e-3


def test_the_scheme_is_the_librarys_equation():
    """In short steps the oracle follows the trajectories of the library, so that both mean the same."""
    rng = np.random.default_rng(5)
    made = random_systems(rng, 400)
    row = int(np.flatnonzero((made.rate[:, 1] > 1e-6) & (made.rate[:, 2] < 1e-6) & (made.rule[:, 0] == 0))[0])
    one = made._replace(**{name: getattr(made, name)[row : row + 1, :2] for name in made._fields[:-1]},
                        rule=made.rule[row : row + 1])  # fmt: skip
    classes = []
    for i in range(2):
        p, a, b, q = (float(getattr(one, name)[0, i]) for name in ("first", "a", "b", "q"))
        size = {"kind": "phase_type", "initial": [p, 1.0 - p], "generator": [[-a, q * a], [0.0, -b]]}
        x = float(one.x[0, i])
        speedup = {"kind": "power", "exponent": x} if one.power[0, i] else {"kind": "amdahl", "sequential": x}
        arrivals = {"kind": "poisson", "rate": float(one.rate[0, i])}
        classes.append(JobClass(f"c{i}", arrivals, size, speedup, float(one.cost[0, i])))
    fluid = Fluid(Workload("one", tuple(classes)), Policy.of("wham"), 1.0)
    z = upper_state(one, 0.8)
    known = trajectory(fluid, z.reshape(-1), [0.0, 1.0]).state[-1]
    for _ in range(500):
        z = step(one, z, speeds(one, z.sum(axis=2)), 1.0 / 500)
    assert z.reshape(-1) == pytest.approx(known, rel=5e-3)


# --- monotone rules --------------------------------------------------------------------------------------


def rule_of(policy, workload, cores):
    """Cores of a job of each class at real-valued counts, from the program that the simulator runs."""
    program = policy.program(workload, cores)
    assert program.sees == COUNTS
    table = program.table.copy()

    def widths(jobs):
        if jobs.sum() >= cores and program.discipline != SHARE:
            return np.full(len(jobs), cores / jobs.sum())
        out = np.zeros(len(jobs))
        program.rule(jobs.copy(), float(cores), table, out)
        return out

    return widths


@pytest.mark.parametrize("load", [0.25, 0.8])
@pytest.mark.parametrize("name", MARKETS)
def test_markets_are_monotone_at_random_counts(name, load):
    """What is said of a market by construction is true of its fluid equation wherever it is asked."""
    workload = paper_workload(16, load)
    fluid = fluid_of(workload, Policy.of(name), 16.0)
    found = asked(lambda jobs: fluid.market(jobs).quantities, 3, 16.0, pairs=150)
    assert found.holds, found


def test_what_is_listed_of_every_policy():
    """`list policies` says True of a rule that passes at random counts, and None of what is no class rule."""
    workload, listed = paper_workload(8), {row["name"]: row["monotone"] for row in api.listing("policies")}
    assert len(listed) == len(catalog.kinds("policies"))
    for name, said in listed.items():
        policy = Policy.of(name)
        try:
            policy.buyers(workload)
        except UnsupportedError:
            assert said is None, name
            continue
        if said and policy.program(workload, 8).sees == COUNTS:
            assert asked(rule_of(policy, workload, 8), 3, 8.0, pairs=150).holds, name
    assert {name for name, said in listed.items() if said} >= {*MARKETS, "fcfs"}
    assert listed["wham-improved"] is False


def test_a_rule_that_lets_jobs_wait_is_caught():
    """`wham-improved`, where it is another policy than WHAM, widens some jobs when others come."""
    workload = four_classes()
    policy = Policy.of("wham-improved")
    assert policy.in_effect(workload, 12) is policy
    found = monotone(policy, workload, 12)
    assert not found.holds
    assert found.worst > 0.01
    assert "to" in found.example


def test_of_a_users_rule_only_evidence_is_claimed():
    """A rule of one's own that is monotone is asked, and its attractor is not called proved."""
    from dataclasses import dataclass

    from malleable.policies.base import Policy as Base
    from malleable.policies.equi import Equi

    @dataclass(frozen=True)
    class Mine(Base):
        def program(self, workload, cores):
            return Equi().program(workload, cores)

        def allocate(self, jobs, cores, *, integer=False):
            return Equi().allocate(jobs, cores, integer=integer)

    found = mean_field(paper_workload(16, 0.5), 16, Mine(), starts=0).certificate
    assert (found.proved, found.monotone) == (False, True)
    assert "evidence and no proof" in found.reason


# --- the certificate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.25, 0.9])
@pytest.mark.parametrize("name", MARKETS[:4])
def test_the_bracket_is_monotone_and_meets(name, load):
    """From the empty system counts only rise, from the upper state they only fall, and both end as one."""
    result = mean_field(paper_workload(64, load), 64, Policy.of(name), starts=1)
    found = result.certificate
    assert (found.proved, found.reason) == (True, PROVED)
    low, high = np.array(found.lower.jobs), np.array(found.upper.jobs)
    assert np.diff(low, axis=0).min() > -1e-7
    assert np.diff(high, axis=0).max() < 1e-7
    assert (high - low).min() > -1e-7
    assert high[0].sum() == pytest.approx(128.0)
    assert 0.0 < found.meet <= found.lower.times[-1]
    fixed = np.array([c.jobs for c in result.classes])
    assert np.abs(np.array([low[-1], high[-1]]) / fixed - 1.0).max() < 1e-3


def test_every_trajectory_stays_in_the_bracket():
    """Starts below the upper state, overload included, keep their counts between the two trajectories."""
    result = mean_field(paper_workload(64, 0.8), 64, Policy.of("wham"), starts=1)
    fluid, found = result.fluid, result.certificate
    times = np.array(found.lower.times)
    upper = fluid.work * (128.0 / fluid.work.sum())
    rng = np.random.default_rng(3)
    for _ in range(6):
        jobs = trajectory(fluid, upper * rng.random(len(upper)), times).jobs
        assert (jobs - np.array(found.lower.jobs)).min() > -0.02
        assert (np.array(found.upper.jobs) - jobs).min() > -0.02
        near = times >= found.meet
        point = np.array([c.jobs for c in result.classes])
        assert np.linalg.norm(jobs[near] - point, axis=1).max() < 3.0 * found.within * np.linalg.norm(point)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("greedy:weight=cmu", "do not time-share"),
        ("fcfs", "evidence and no proof"),
    ],
)
def test_where_the_theorem_does_not_apply(name, reason):
    """The certificate names the assumption that is not known to hold, and shows no bracket."""
    found = mean_field(paper_workload(16, 0.25), 16, Policy.of(name), starts=2).certificate
    assert not found.proved
    assert reason in found.reason
    assert found.lower is found.upper is found.meet is None


def test_equal_shares_need_concave_speedups():
    """A speedup better than one core for each core may give EQUI several fixed points: not proved."""
    steep = {"kind": "table", "cores": [1, 2, 4, 8], "speedup": [1.0, 2.3, 3.0, 4.0]}
    size = {"kind": "exponential", "mean": 1.0}
    one = Workload("one", (JobClass("only", {"kind": "poisson", "rate": 6.0}, size, steep, 1.0),))
    found = {name: mean_field(one, 16, Policy.of(name), starts=0).certificate for name in ("equi", "wham")}
    assert not found["equi"].proved
    assert "concave" in found["equi"].reason
    assert found["wham"].proved


def test_improvement_is_measured_and_not_proved():
    """`wham-improved` where it acts: not monotone, so the starts are what there is."""
    result = mean_field(four_classes(), 12, Policy.of("wham-improved"), starts=2)
    assert not result.certificate.proved
    assert "not monotone" in result.certificate.reason
    assert result.attractor.starts == 2


def test_sated_jobs_are_attracted_too():
    """Where cores are more than the jobs can use, every job has all that helps: proved at price 0."""
    size, speedup = {"kind": "exponential", "mean": 1.0}, {"kind": "rooftop", "cores": 2.0}
    one = Workload("one", (JobClass("only", {"kind": "poisson", "rate": 1.0}, size, speedup, 1.0),))
    result = mean_field(one, 8, Policy.of("wham"), starts=2)
    assert result.price == 0.0
    assert result.certificate.proved


def test_json_has_the_old_keys_and_the_new():
    """Keys are added and none is changed; without starts there is no bracket."""
    found = mean_field(paper_workload(16, 0.25), 16, Policy.of("wham"), starts=2).to_dict()["attractor"]
    assert {"starts", "converged", "worst_distance", "left_domain"} < set(found)
    assert {"proved", "reason", "monotone", "lower", "upper", "within", "meet"} < set(found)
    assert len(found["lower"]["times"]) == len(found["upper"]["jobs"]) == 33
    bare = mean_field(paper_workload(16, 0.25), 16, Policy.of("wham"), starts=0).to_dict()["attractor"]
    assert (bare["proved"], bare["lower"], bare["meet"]) == (True, None, None)
