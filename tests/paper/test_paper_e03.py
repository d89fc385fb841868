"""Experiment 3: WHAM against EQUI and GREEDY."""

from __future__ import annotations

import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e03_others as e03
from malleable.paper.experiments.e03_others.cells import QUICK_CORES, exact_cost
from support.paper_checks import broken, check_cells, check_findings, computed, scaled, verdict


@pytest.fixture(scope="module")
def values():
    return computed(e03)


@pytest.fixture(scope="module")
def findings(values):
    return e03.findings(QUICK, values)


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e03, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series, intervals, notes and columns are as long as they should be."""
    check_findings(findings)


def test_no_verdict_fails(findings):
    """On the policies as they are, nothing that the paper says is refuted even by a quick look."""
    assert [v.statement for v in findings.verdicts if v.holds is False] == []
    assert verdict(findings, "WHAM is better than EQUI").holds
    assert verdict(findings, "Simulated costs agree").holds


@pytest.mark.parametrize(
    ("policy", "cost"), [("wham", 0.2400331), ("greedy", 0.2414230), ("equi", 0.2440912)]
)
def test_exact_costs(policy, cost, values):
    """MODEL.md §6, n = 16."""
    found = values[f"exact-{policy}-16"]
    assert found["cost"] == pytest.approx(cost, abs=5e-8)
    assert max(found["truncation"], found["residual"]) < 1e-9
    assert found["overload"] < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "cost"), [("wham", 0.1695505), ("greedy", 0.1711420), ("equi", 0.1845563)]
)
def test_exact_costs_on_more_cores(policy, cost):
    """MODEL.md §6, n = 128."""
    found = exact_cost(policy, 128, 0.25, 40)
    assert found["cost"] == pytest.approx(cost, abs=5e-8)


def test_limits(values):
    """MODEL.md §6: limits over V*, and the coefficients of 1/n."""
    known = values["limits"]
    ratios = {
        "wham": 1.0, "equi": 1.118885, "greedy": 1.011113,
        "greedy:weight=mu": 1.0904, "greedy:weight=c": 1.0260, "greedy:weight=cmu": 1.0069,
    }  # fmt: skip
    for policy, ratio in ratios.items():
        assert known[policy]["cost"] / known["bound"] == pytest.approx(ratio, abs=6e-5)
    for policy, coefficient in (("wham", 1.425163), ("greedy", 1.40346), ("equi", 0.99923)):
        assert known[policy]["coefficient"] == pytest.approx(coefficient, abs=1e-5)


def test_a_rival_that_wins_once_is_told(values):
    """One number of cores at which GREEDY is better turns `at every n`; an unclear one leaves it open."""

    def wins(v):
        scaled(v["compared-16"]["differences"]["greedy"], -1.0)
        d = v["compared-16"]["differences"]["greedy"]
        d["low"], d["high"] = d["high"], d["low"]

    def unclear(v):
        v["compared-16"]["differences"]["greedy"]["low"] = -1e-6

    found = verdict(e03.findings(QUICK, broken(values, wins)), "WHAM is better than GREEDY")
    assert found.holds is False
    assert "worse for n = 16" in found.measured
    found = verdict(e03.findings(QUICK, broken(values, unclear)), "WHAM is better than GREEDY")
    assert found.holds is None


def test_wrong_limits_are_noticed(values):
    """A WHAM that stays 10 % above V*, and an EQUI that comes down to it, turn their verdicts."""

    def above(v):
        for n in QUICK_CORES:
            scaled(v[f"compared-{n}"]["results"]["wham"]["cost"], 1.1)

    def comes_down(v):
        for n in QUICK_CORES:
            scaled(v[f"compared-{n}"]["differences"]["equi"], 4.0 / n)

    assert verdict(e03.findings(QUICK, broken(values, above)), "Simulated WHAM tends").holds is False
    assert verdict(e03.findings(QUICK, broken(values, comes_down)), "Simulated EQUI stays").holds is False


def test_other_wrong_numbers_are_noticed(values):
    """A simulator off by 5 %, and a mean field whose limit is not V*, turn their verdicts."""

    def off(v):
        scaled(v["compared-16"]["results"]["greedy"]["cost"], 1.05)

    def elsewhere(v):
        v["limits"]["wham"]["cost"] *= 1.0 + 1e-6

    assert verdict(e03.findings(QUICK, broken(values, off)), "Simulated costs agree").holds is False
    assert verdict(e03.findings(QUICK, broken(values, elsewhere)), "In the mean-field limit").holds is False
