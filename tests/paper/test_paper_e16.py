"""Experiment 16: what is said of distances from the bound for given jobs follows from the numbers."""

from __future__ import annotations

import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e16_finite_n_bound as e16
from malleable.paper.experiments.e16_finite_n_bound.cells import settings_of
from malleable.paper.experiments.shared.known_jobs import above, known_jobs
from malleable.paper.simulation_cells import described
from malleable.statistics.intervals import Estimate
from support.paper_checks import broken, check_cells, check_findings, scaled, verdict
from support.paper_numbers import comparison, interval

BELOW, NEAR, MOSTLY, FIRST = (
    "No policy costs",
    "On the paper's workload WHAM",
    "On the paper's workload most",
    "WHAM",
)


def made_up(effort=NORMAL):
    """V* is .15 and WHAM .2 everywhere; the bound for given jobs is .1985, and rivals cost more."""
    values = {}
    for cell in e16.cells(effort):
        kind = cell.key.partition("-")[0]
        costs = {
            "counts": {"wham": 0.2, "equi": 0.21, "greedy": 0.205},
            "fitted": {"wham-fitted": 0.1995},
            "pools": {"fw-cam-repaired": 0.25},
        }
        values[cell.key] = interval(0.1988, 1e-4) if kind == "known" else comparison(costs[kind], bound=0.15)
    return values


def after(change):
    """Findings after a change of the made-up values."""
    return e16.findings(NORMAL, broken(made_up(), change))


def test_cells():
    """Cells have names and arguments that files can hold, at every effort, and random loads are in range."""
    check_cells(e16, (QUICK, NORMAL, FULL))
    settings = settings_of(FULL)
    assert sum(key.startswith("random") for key in settings) == 60
    for where in settings.values():
        made = described(where.get("workload", "paper"), where["cores"], where["load"])
        assert 0.0 < made.load(where["cores"]) < 1.0


@pytest.mark.parametrize("effort", [QUICK, NORMAL, FULL], ids=lambda effort: effort.name)
def test_good_numbers_bear_it_out(effort):
    """Numbers like those measured get all that is claimed."""
    findings = e16.findings(effort, made_up(effort))
    check_findings(findings)
    assert [one.statement for one in findings.verdicts if not one.holds] == []
    (table,) = findings.tables
    assert min(table.columns["unavoidable share"]) > 0.4


def test_a_policy_below_the_bound_is_told():
    """One cost below the bound turns the verdict, and names the policy and the setting."""

    def change(values):
        scaled(values["fitted-paper-paper-16-0.25"]["results"]["wham-fitted"]["cost"], 0.9)

    found = verdict(after(change), BELOW)
    assert found.holds is False
    assert "wham-fitted (the paper's, n = 16" in found.measured


def test_a_distant_wham_is_told():
    """WHAM 10 % above the bound on 64 cores is no few per cent."""

    def change(values):
        scaled(values["known-paper-paper-64-0.25"], 0.9)

    assert verdict(after(change), NEAR).holds is False


def test_a_bound_near_v_explains_nothing():
    """Where the bound for given jobs is hardly above V*, most of the distance could be avoided."""

    def change(values):
        scaled(values["known-paper-paper-16-0.25"], 0.151 / 0.1988)

    assert verdict(after(change), MOSTLY).holds is False


def test_a_rival_that_is_nearer_is_told():
    def change(values):
        scaled(values["counts-paper-paper-16-0.25"]["results"]["equi"]["cost"], 0.9)

    found = after(change)
    (order,) = [one for one in found.verdicts if one.statement.startswith("WHAM is nearer")]
    assert order.holds is False


def test_what_has_no_plan_is_left_out():
    """A cell that failed and a policy that is unstable have no rows; the rest stays."""

    def change(values):
        values["pools-paper-paper-2-0.25"] = {"error": "no plan"}
        values["known-paper-paper-4-0.25"] = {"error": "no bound"}
        values["counts-paper-paper-8-0.25"]["results"]["equi"]["stable"] = False

    findings = after(change)
    check_findings(findings)
    rows = list(zip(findings.tables[0].columns["setting"], findings.tables[0].columns["policy"], strict=True))
    assert not any("n = 4," in setting for setting, _ in rows)
    assert not any("the paper's, n = 2," in setting and policy == "FW-CAM" for setting, policy in rows)
    assert not any("the paper's, n = 8," in setting and policy == "EQUI" for setting, policy in rows)


def test_the_noise_of_both_counts():
    """The distance has the noise of the cost and of the bound."""
    found = above(Estimate(1.1, 1.1 - 0.033, 1.1 + 0.033), Estimate(1.0, 0.96, 1.04))
    assert found.mean == pytest.approx(0.1)
    assert found.half_width == pytest.approx(1.1 * 0.05)


def test_a_cell_is_a_bound_between_v_and_the_cost_of_wham():
    """On 16 cores at load .25: V* is .170, WHAM costs .240, and the bound for short streams lies between."""
    found = known_jobs(16, 0.25, 500, 1)
    assert 0.19 < found["mean"] < 0.245
    assert found["low"] < found["mean"] < found["high"]
