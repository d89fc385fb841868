"""Experiment 15: what is said of the improved policies follows from the numbers."""

from __future__ import annotations

import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e15_few_cores as e15
from malleable.paper.experiments.e15_few_cores.held_out import HELD_OUT, PAIRS, setting
from malleable.paper.experiments.e15_few_cores.systems import BLIND_STUDY, SIZED_STUDY
from malleable.paper.simulation_cells import described
from support.paper_checks import broken, check_cells, check_findings, computed, verdict
from support.paper_numbers import comparison

OPTIMAL, STUDY, TERMS = "On small systems", "WHAM's gaps are those", "Exact chains extrapolate"
IMPROVED = "wham-improved", "wham-improved:headroom=1"
BLIND, SIZED = "On held-out workloads wham-improved", "On held-out workloads wham-fitted"
NO_LOSS, TABLE = "wham-improved costs more on none", "With sizes known the gains"
BOUND, STABLE = "As n grows", "Both policies are stable"


def compared(pair, relative, half=1e-5):
    """The value of a cell in which the policy costs 1 + relative times as much as its base."""
    first, second, _ = PAIRS[pair]
    return {**comparison({first: 1.0, second: 1.0 + relative}, half=half, bound=0.9), "note": ""}


def made_up(effort=NORMAL):
    """Values of all cells: the study's gaps, exact terms that tend to theory, gains that are as good."""
    values = {}
    for cell in e15.cells(effort):
        given = cell.arguments
        if cell.key.startswith("gap"):
            name, cores = cell.key.split("-")[1], given["cores"]
            known = BLIND_STUDY.get((name, cores, given["load"]))
            gap = 0.2 if known is None else known.wham
            costs = {"wham": {"cost": 1.0 + 0.01 * gap}, **{key: {"cost": 1.00005} for key in IMPROVED}}
            values[cell.key] = {"states": 100, "real": {"optimum": 1.0, "policies": costs}}
        elif cell.key.startswith("order"):
            n = given["cores"]
            costs = {"bound": 1.0, "optimum": 1.0 + 1.0 / n + 9.0 / n**2, "wham": 1.0 + 1.1 / n + 9.0 / n**2}
            values[cell.key] = {**costs, "best term": 1.0, "wham term": 1.1, "applies": True}
        elif cell.key.startswith("limit"):
            value = compared(given["pair"], 0.0)
            for result in value["results"].values():
                result["gap"] = 5.0 / given["cores"]
            values[cell.key] = value
        elif cell.key.startswith("study"):
            where = given["name"], given["cores"], given["load"]
            values[cell.key] = compared(given["pair"], 0.01 * SIZED_STUDY[where])
        else:
            values[cell.key] = compared(given["pair"], -0.01)
    return values


def after(change):
    """Findings after a change of the made-up values."""
    return e15.findings(NORMAL, broken(made_up(), change))


def test_cells():
    """Cells have names and arguments that files can hold, at every effort; the held-out ones grow to 200."""
    check_cells(e15, (QUICK, NORMAL, FULL))
    keys = [cell.key for cell in e15.cells(FULL)]
    for pair in ("blind", "sized"):
        assert sum(key.startswith(f"held-out-{pair}") for key in keys) == 200
    assert any(key.endswith("paper-16384-0.25") for key in keys)


def test_held_out_workloads_are_the_same_every_time():
    """They depend on their seeds alone, keep to their ranges, and come with every law of sizes."""
    laws = set()
    for seed in range(HELD_OUT, HELD_OUT + 12):
        document, cores, load = setting(seed)
        assert setting(seed) == (document, cores, load)
        made = described(document, cores, load)
        assert 2 <= len(made.classes) <= 6
        assert 3 <= cores <= 64
        assert 0.3 <= made.load(cores) <= 0.95
        laws |= {one.size.kind for one in made.classes}
    assert laws == {"exponential", "hyperexponential", "lognormal"}


@pytest.mark.parametrize("effort", [NORMAL, FULL], ids=lambda effort: effort.name)
def test_good_numbers_bear_it_out(effort):
    """Numbers as measured get all that is claimed, at both efforts."""
    findings = e15.findings(effort, made_up(effort))
    check_findings(findings)
    assert [one.statement for one in findings.verdicts if not one.holds] == []


def test_a_policy_that_steps_back_differs_by_nothing():
    """A cell with a note alone counts as a difference of exactly 0, and is counted as stepping back."""
    key = f"held-out-blind-{HELD_OUT}"
    findings = after(lambda v: v.update({key: {"note": "wham-improved stays with WHAM: no gain"}}))
    check_findings(findings)
    assert verdict(findings, NO_LOSS).holds
    assert "steps back on 1" in verdict(findings, BLIND).measured


def test_a_loss_on_one_workload_is_told():
    """A loss of one per cent on a single held-out workload turns the verdict, and the workload is named."""
    key = f"held-out-blind-{HELD_OUT + 3}"
    found = verdict(after(lambda v: v.update({key: compared("blind", 0.01)})), NO_LOSS)
    assert found.holds is False
    assert str(HELD_OUT + 3) in found.measured


@pytest.mark.parametrize(("start", "pair"), [(BLIND, "blind"), (SIZED, "sized")])
def test_no_gain_is_no_gain(start, pair):
    """A policy that costs as much on average is not called cheaper; one that costs more is refuted."""

    def costs(relative, half):
        def change(values):
            for key in values:
                if key.startswith(f"held-out-{pair}"):
                    values[key] = compared(pair, relative, half)

        return verdict(after(change), start).holds

    assert costs(0.0, 1e-3) is None
    assert costs(0.01, 1e-5) is False


def test_gaps_that_are_not_those_of_the_study_are_told():
    """A gap of the improvement above the study's, or one of WHAM that is off in the last digit, turn it."""

    def gap(policy, cost):
        def change(values):
            values["gap-weights-16-0.9"]["real"]["policies"][policy]["cost"] = cost

        return after(change)

    assert verdict(gap(IMPROVED[1], 1.0030), STUDY).holds is False
    assert verdict(gap(IMPROVED[1], 1.0030), OPTIMAL).holds is False
    assert verdict(gap(IMPROVED[0], 1.0030), OPTIMAL).holds
    assert verdict(gap("wham", 1.0799), STUDY).holds is False


def test_terms_that_tend_elsewhere_are_told():
    """A coefficient that is 5 % off turns the verdict."""

    def change(values):
        for key, value in values.items():
            if key.startswith("order-shapes"):
                value["best term"] = 1.05

    assert verdict(after(change), TERMS).holds is False


def test_gains_below_those_of_the_study_are_told():
    """Half of the study's gain is not enough; an interval around the threshold leaves it open."""

    def at(relative, half):
        cell = "study-trusting-four-12-0.7"
        return verdict(after(lambda v: v.update({cell: compared("trusting", relative, half)})), TABLE).holds

    assert at(-0.0020, 1e-5) is False
    assert at(-0.0040, 5e-3) is None


def test_costs_that_stay_above_the_bound_are_told():
    """A cost that rises with n, or ends far above V*, turns the verdict."""

    def at(gap):
        def change(values):
            values["limit-at-ease-paper-1024-0.25"]["results"]["wham-improved"]["gap"] = gap

        return verdict(after(change), BOUND).holds

    assert at(0.5) is False
    assert at(0.0196) is False
    assert at(0.015)


def test_an_unstable_run_is_told():
    """One run without a steady state turns the verdict, and is named."""

    def change(values):
        values["load-blind-weights-8-0.98"]["results"]["wham-improved"]["stable"] = False

    found = verdict(after(change), STABLE)
    assert found.holds is False
    assert "ρ = 0.98" in found.measured


def test_quick_numbers_are_right():
    """The exact cells at quick effort: the study's gap, and terms that approach the coefficients."""
    values = computed(e15, only=lambda key: key.startswith(("gap", "order")))
    real = values["gap-weights-8-0.7"]["real"]
    assert real["policies"]["wham"]["cost"] / real["optimum"] == pytest.approx(1.140, abs=0.001)
    assert all(real["policies"][policy]["cost"] / real["optimum"] < 1.001 for policy in IMPROVED)
    few, many = values["order-shapes-32-0.3"], values["order-shapes-64-0.3"]
    for which, term in (("optimum", "best term"), ("wham", "wham term")):
        exact = [(one[which] - one["bound"]) * n for one, n in ((few, 32), (many, 64))]
        assert exact[0] > exact[1] > few[term]
