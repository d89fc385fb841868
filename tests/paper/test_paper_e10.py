"""The optimality gap: quick cells agree with other solvers, and verdicts turn when numbers do."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.model import Workload
from malleable.paper.contracts import EFFORTS, NORMAL, QUICK
from malleable.paper.experiments import e10_optimality_gap
from malleable.paper.experiments.e10_optimality_gap.cells import WORKLOADS
from malleable.paper.experiments.shared.exact_gaps import gaps
from malleable.paper.experiments.shared.workloads import exponential, short_and_long
from malleable.theory.class_speeds import class_speeds
from malleable.theory.markov_chain import solve
from malleable.theory.relaxed import bound
from support.paper_checks import broken, check_cells, check_findings, computed, verdict


@functools.cache
def values():
    return computed(e10_optimality_gap)


def findings(change=lambda _: None):
    return e10_optimality_gap.findings(QUICK, broken(values(), change))


def exact_cost(document, cores, load, policy, limit):
    """The cost on a chain so long that nothing is lost, by another solver."""
    made = Workload.from_dict(document).at(cores, load)
    laws = [job_class.size.phase_type() for job_class in made.classes]
    chain = solve(made.rates, laws, class_speeds(Policy.of(policy), made, cores), limit)
    assert chain.truncation < 1e-9
    return chain.cost(made.holding_costs)


def test_cells_are_well_formed():
    """Every effort has cells with their own keys and plain arguments."""
    check_cells(e10_optimality_gap, EFFORTS.values())


def test_findings_are_well_formed():
    """Figures, tables and verdicts fit together; nothing that can be decided quickly fails unexpectedly."""
    found = findings()
    check_findings(found)
    words = {v.statement: v.word for v in found.verdicts}
    assert sorted(words.values()).count("fails") == 1
    assert verdict(found, "No other class rule").word == "fails"


@pytest.mark.parametrize(
    ("name", "cores", "load", "limit"),
    [
        pytest.param("two", 4, 0.9, 240, marks=pytest.mark.slow),
        ("sizes", 8, 0.55, 60),
        ("three", 4, 0.25, 20),
    ],
)
def test_costs_agree_with_the_exact_chain(name, cores, load, limit):
    """Short, charged chains give what long ones give: EQUI and WHAM cost what `theory.markov_chain` says."""
    document = WORKLOADS[name][1]
    value = values()[f"gap-{name}-{cores}-{load:g}"]
    for policy in ("equi", "wham"):
        exact = exact_cost(document, cores, load, policy, limit)
        assert value["real"]["policies"][policy]["cost"] == pytest.approx(exact, rel=5e-6), policy
    assert value["bound"] == bound(Workload.from_dict(document).at(cores, load), cores).bound_capped


def test_the_discounted_policy_joins_when_there_is_one(monkeypatch):
    """Simulations include `wham-discounted` as soon as the catalog has it."""

    def simulated():
        return [c.arguments["policies"] for c in e10_optimality_gap.cells(NORMAL) if "simulated" in c.key]

    monkeypatch.setattr("malleable.catalog.kinds", lambda _: {"wham": ""})
    assert all("wham-discounted" not in policies for policies in simulated())
    monkeypatch.setattr("malleable.catalog.kinds", lambda _: {"wham": "", "wham_discounted": ""})
    assert all("wham-discounted" in policies for policies in simulated())


def test_workloads_are_what_they_say():
    """Exponential sizes of the paper's means; short and long jobs share the load evenly."""
    three = Workload.from_dict(exponential())
    assert three.mean_sizes == pytest.approx([1 / 5, 5 / 9, 1 / 3])
    assert {c.size.kind for c in three.classes} == {"exponential"}
    assert three.holding_costs.tolist() == [1.0, 2.0, 1.0]
    pair = Workload.from_dict(short_and_long())
    assert pair.loads[0] == pytest.approx(pair.loads[1])
    assert len(Workload.from_dict(exponential("class-1", "class-2")).classes) == 2


def test_whole_cores_are_compared_with_whole_cores():
    """Where whole cores are asked for, their optimum is dearer than the other, and WHAM's dearer still."""
    document = WORKLOADS["two"][1]
    value = gaps(document, 4, 0.5, policies=["wham"], whole=["wham-integer"], max_states=5000)
    whole = value["whole"]
    assert value["real"]["optimum"] < whole["optimum"] < whole["policies"]["wham-integer"]["cost"]
    assert whole["policies"]["wham-integer"]["cost"] == pytest.approx(
        exact_cost(document, 4, 0.5, "wham-integer", 40), rel=5e-6
    )


def test_the_map_shows_whole_allocations():
    """WHAM's row of the map is its allocation: equal widths of all n cores while each job has one."""
    value = values()["map"]
    wham, best = np.array(value["wham"]), np.array(value["optimum"])
    assert wham[2, 2] == pytest.approx(4.0)
    assert wham[1, 3] == pytest.approx(6.0)
    assert wham[3, 9] == 8.0
    assert wham[9, 3] == 3.0
    assert (best <= 8.0 + 1e-9).all()
    assert best[0, 1:] == pytest.approx(8.0)


def change_policy(values, key, policy, factor):
    values[key]["real"]["policies"][policy]["cost"] *= factor


def test_a_policy_below_the_optimum_is_noticed():
    """One policy cheaper than the optimum, or an optimum below V*, and the sandwich fails."""
    start = "The optimum lies between"
    assert verdict(findings(), start).holds is True
    cheap = findings(lambda v: change_policy(v, "gap-two-8-0.55", "wham", 0.99))
    assert verdict(cheap, start).holds is False

    def too_low(values):
        values["gap-sizes-8-0.25"]["real"]["low"] *= 0.5

    assert verdict(findings(too_low), start).holds is False


def test_an_open_bracket_is_noticed():
    """An optimum that is not closed in, or a chain that is cut too early, fails."""

    def wide(values):
        values["gap-two-8-0.55"]["real"]["high"] *= 1.001

    def cut(values):
        values["gap-two-8-0.55"]["real"]["lost"] = 0.01

    assert verdict(findings(), "Every optimum").holds is True
    assert verdict(findings(wide), "Every optimum").holds is False
    assert verdict(findings(cut), "Every optimum").holds is False


def test_a_wham_that_is_far_off_is_noticed():
    """Two percent on the paper's classes, and WHAM is no longer within one."""
    worse = findings(lambda v: change_policy(v, "gap-two-8-0.55", "wham", 1.02))
    assert verdict(findings(), "On the paper's classes").holds is True
    assert verdict(worse, "On the paper's classes").holds is False


def test_a_gap_that_rises_again_is_noticed():
    """The gap falls after its peak; if it rises again the verdict fails, if it has no peak yet it is open."""
    start = "WHAM's gap to the optimum falls with n once it has peaked: short"
    assert verdict(findings(), start).holds is True

    def bump(values):
        change_policy(values, "gap-sizes-1024-0.25", "wham", 0.97)

    assert verdict(findings(bump), start).holds is False
    rising = findings(lambda v: change_policy(v, "gap-sizes-4096-0.25", "wham", 1.1))
    assert verdict(rising, start).holds is None
    assert "still rising" in verdict(rising, start).measured


def test_a_wham_that_no_rule_beats_is_noticed():
    """GREEDY with w = cμ beats WHAM at low load; made dearer, no rule does."""

    def dear(values):
        for key, value in values.items():
            if key.startswith("gap"):
                for policy, one in value["real"]["policies"].items():
                    one["cost"] *= 2.0 if policy != "wham" else 1.0

    assert verdict(findings(dear), "No other class rule").holds is True


def test_an_unstable_policy_has_no_gap():
    """A policy whose chain is full is left out and does not beat anybody."""

    def full(values):
        one = values["gap-sizes-8-0.25"]["real"]["policies"]["greedy:weight=cmu"]
        one["lost"], one["cost"] = 0.3, 0.0

    assert verdict(findings(full), "The optimum lies between").holds is True


def test_short_jobs_are_favoured():
    """An optimum that gives short jobs less than WHAM in one state turns the verdict."""

    def less(values):
        values["map"]["optimum"][2][2] = 1.0

    assert verdict(findings(), "With short and long").holds is True
    assert verdict(findings(less), "With short and long").holds is False


def test_simulations_decide_only_what_they_can():
    """Real WHAM is clearly below the size-blind optimum; a dearer one decides nothing; EQUI must agree."""
    start = "Knowing sizes"
    assert verdict(findings(), start).holds is True

    def dear(values):
        cost = values["simulated-two-4-0.9"]["results"]["wham"]["cost"]
        for end in cost:
            cost[end] *= 3.0

    assert verdict(findings(dear), start).holds is None

    def wrong(values):
        change_policy(values, "gap-two-4-0.9", "equi", 2.0)

    assert verdict(findings(), "Simulated EQUI").holds is True
    assert verdict(findings(wrong), "Simulated EQUI").holds is False


def test_a_failed_cell_is_left_out():
    """A setting that failed does not stop the others."""

    def fail(values):
        values["gap-three-4-0.25"] = {"error": "too many states"}

    check_findings(findings(fail))
