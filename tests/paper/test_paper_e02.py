"""Experiment 2: FW-CAM and WHAM against the lower bound."""

from __future__ import annotations

import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e02_converge as e02
from malleable.paper.experiments.e02_converge.cells import BETAS, QUICK_CORES, QUICK_FIXED
from malleable.paper.experiments.shared.fw_cam_pools import CANDIDATES, all_planned, best_planned, planned
from support.paper_checks import broken, check_cells, check_findings, computed, scaled, verdict


@pytest.fixture(scope="module")
def values():
    return computed(e02)


@pytest.fixture(scope="module")
def findings(values):
    return e02.findings(QUICK, values)


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e02, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series, intervals, notes and columns are as long as they should be."""
    check_findings(findings)


def test_no_verdict_fails(findings):
    """On the policies as they are, nothing that the paper says is refuted even by a quick look."""
    assert [v.statement for v in findings.verdicts if v.holds is False] == []
    assert verdict(findings, "WHAM converges faster").holds


@pytest.mark.parametrize(("cores", "cost"), [(64, 0.33994747), (1024, 0.20212179)])
def test_exact_costs(cores, cost):
    """MODEL.md §6: FW-CAM with β = .8."""
    assert planned(cores, 0.8, 0.25, 200)["cost"] == pytest.approx(cost, abs=5e-9)


def test_where_there_is_no_plan():
    """MODEL.md §1.3: β = .8 fails for n ≤ 15 and at 42–44; β = .9 is infeasible up to n = 17."""
    failing = {
        n for n in (4, 5, 15, 16, 41, 42, 43, 44, 45) if planned(n, 0.8, 0.25, 0)["status"] != "stable"
    }
    assert failing == {4, 5, 15, 42, 43, 44}
    assert [planned(n, 0.9, 0.25, 0)["status"] for n in (17, 18)] == ["infeasible", "stable"]
    assert [planned(n, 0.8, 0.25, 0)["status"] for n in (4, 5)] == ["infeasible", "unstable"]


def test_best_beta(values):
    """The search finds the least exact cost of all candidates, although it looks at few of them."""
    every = [planned(64, beta, 0.25, 200) for beta in CANDIDATES]
    least = min(row["cost"] for row in every if row["status"] == "stable")
    assert best_planned(64, 0.25, 200)["cost"] == least
    assert values["best-64"]["cost"] == least < values["exact-0.8"][1]["cost"]


def test_missing_points_are_marked(findings):
    """An infeasible and an unstable setting are shown as such, in the figure and in the table."""
    marks = {(n, text) for n, _, text in findings.figures[0].panels[0].marks}
    assert marks == {(16.0, "unstable: β = 0.76"), (16.0, "infeasible: β = 0.9")}
    assert {"stable", "unstable", "infeasible"} <= set(findings.tables[0].columns["status"])


def test_a_mark_names_the_beta_that_has_no_plan_there(values):
    """β = 0.8 has plans on 16 cores and none on 43: marks of a line all belong to the β that is named."""

    def more(v):
        for beta in (0.76, 0.8, 0.9):
            more_rows = all_planned([8, 38, 43, 45, 54], beta, 0.25, 20)
            v[f"exact-{beta}"] = sorted(v[f"exact-{beta}"] + more_rows, key=lambda row: row["cores"])

    marks = e02.findings(QUICK, broken(values, more)).figures[0].panels[0].marks
    named = {height: text for _, height, text in marks if text}
    lines = {(named[height], n) for n, height, _ in marks}
    assert ("unstable: β = 0.8", 43.0) in lines
    assert ("unstable: β = 0.8", 16.0) not in lines
    assert {n for text, n in lines if text == "infeasible: β = 0.9"} == {8.0, 16.0}
    assert {43.0, 45.0, 54.0} <= {n for _, n in lines}


def test_a_policy_that_stays_above_does_not_converge(values):
    """With EQUI's limit in WHAM's place its convergence fails."""

    def as_equi(v):
        for n in QUICK_CORES:
            scaled(v[f"wham-{n}"]["results"]["wham"]["cost"], 1.1189)

    assert verdict(e02.findings(QUICK, broken(values, as_equi)), "WHAM's cost converges").holds is False


def test_widths_that_level_off_do_not_converge(values):
    """If FW-CAM's slots stayed too narrow, or its queues did not shrink, its convergence would fail."""

    def narrow(v):
        for row in v["exact-0.8"]:
            if "service_cost" in row:
                row["service_cost"] += 0.02

    def waiting(v):
        for row in v["exact-0.8"]:
            if row.get("waiting_cost"):
                row["waiting_cost"] = 0.01

    for change in (narrow, waiting):
        found = e02.findings(QUICK, broken(values, change))
        assert verdict(found, "FW-CAM's cost converges to V* with β = 0.8").holds is False
        assert verdict(found, "FW-CAM's cost converges to V* with β = 0.9").holds


def test_a_slow_policy_is_not_faster(values):
    """If WHAM's gap were that of FW-CAM and more, it would not be called faster."""

    def slow(v):
        for n in QUICK_CORES:
            cost = v[f"wham-{n}"]["results"]["wham"]["cost"]
            scaled(cost, 0.16 * (1.0 + 12.0 * n**-0.2) / cost["mean"])

    assert verdict(e02.findings(QUICK, broken(values, slow)), "WHAM converges faster").holds is False


def test_wrong_simulations_are_noticed(values):
    """A simulator off by a tenth disagrees with the exact costs; one below V* breaks the bound."""

    def off(v):
        for beta in BETAS:
            for n in QUICK_FIXED:
                for result in v[f"fw-cam-{beta}-{n}"].get("results", {}).values():
                    scaled(result["cost"], 1.1)

    def below(v):
        scaled(v["wham-2048"]["results"]["wham"]["cost"], 0.97)

    assert verdict(e02.findings(QUICK, broken(values, off)), "Simulated FW-CAM").holds is False
    assert verdict(e02.findings(QUICK, broken(values, below)), "No policy costs less").holds is False
