"""Experiment 4: FW-CAM's widths converge, its cores fill up, and no job waits."""

from __future__ import annotations

import pytest

from malleable.model import paper_workload
from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e04_fwcam as e04
from malleable.paper.experiments.shared.fw_cam_pools import all_planned
from malleable.theory.fw_cam import plan
from support.paper_checks import broken, check_cells, check_findings, computed, scaled, verdict


@pytest.fixture(scope="module")
def values():
    return computed(e04)


@pytest.fixture(scope="module")
def findings(values):
    return e04.findings(QUICK, values)


def row(values, beta, cores):
    """The plan on so many cores."""
    return next(row for row in values[f"plans-{beta}"] if row["cores"] == cores)


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e04, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series, intervals, notes and columns are as long as they should be."""
    check_findings(findings)


def test_all_verdicts_hold(findings):
    """On FW-CAM as it is, even a quick look confirms all lemmas."""
    assert [v.statement for v in findings.verdicts if not v.holds] == []


def test_plans(values):
    """MODEL.md §6: widths and slots with β = .8; the exact cost is that of the plan itself."""
    pools = row(values, 0.8, 64)["pools"]
    assert [p["width"] for p in pools] == pytest.approx([1.6239470, 7.5784195, 3.8931785], abs=5e-8)
    assert [p["slots"] for p in pools] == [2, 6, 3]
    assert [p["slots"] for p in row(values, 0.8, 1024)["pools"]] == [26, 54, 35]
    assert row(values, 0.8, 256)["cost"] == pytest.approx(plan(paper_workload(256), 256.0, 0.8).cost())
    assert values["relaxed"]["widths"] == pytest.approx([5.4066663883, 25.2311098120, 7.1036764864])


def test_no_job_waits_where_that_is_taken_for_granted():
    """Where M/PH/c is left out because Erlang C is below 1e-12, M/PH/c gives less than 1e-12, too."""
    chosen = plan(paper_workload(1024), 1024.0, 0.9)
    assert all_planned([1024], 0.92, 0.25, 0)[0]["pools"][1]["waiting"] == 0.0
    exact = all_planned([1024], 0.92, 0.25, 200)[0]["pools"][1]
    assert exact["slots"] > chosen.slots[1]
    assert exact["waiting_probability"] < 1e-12


def test_widths_elsewhere_are_noticed(values):
    """Widths that end 1 % off their limits do not converge to them."""

    def off(v):
        for plan_ in v["plans-0.8"]:
            for pool in plan_.get("pools", ()):
                pool["width"] *= 0.99

    found = e04.findings(QUICK, broken(values, off))
    assert verdict(found, "Widths converge to those of the lower bound with β = 0.8").holds is False
    assert verdict(found, "Widths converge to those of the lower bound with β = 0.9").holds


def test_wrong_plans_are_noticed(values):
    """Another effective load, a slot too many, queues that stay: each turns its verdict."""

    def load(v):
        row(v, 0.8, 64)["effective_load"] -= 1e-3

    def slot(v):
        row(v, 0.8, 64)["pools"][0]["slots"] += 1

    def queues(v):
        for plan_ in v["plans-0.8"]:
            for pool in plan_.get("pools", ()):
                if pool["waiting"]:
                    pool["waiting"] = 0.1

    for change, start in (
        (load, "The effective load"),
        (slot, "Slots are"),
        (queues, "Queues vanish with β = 0.8"),
    ):
        assert verdict(e04.findings(QUICK, broken(values, change)), start).holds is False


def test_wrong_simulations_are_noticed(values):
    """A cost and a class's response time that are off by a tenth disagree with the exact ones."""

    def cost(v):
        scaled(v["fw-cam-0.9-64"]["results"]["fw-cam:beta=0.9"]["cost"], 1.1)

    def response(v):
        scaled(v["fw-cam-0.9-64"]["results"]["fw-cam:beta=0.9"]["classes"][1]["response_time"], 0.9)

    assert verdict(e04.findings(QUICK, broken(values, cost)), "Simulated costs").holds is False
    assert verdict(e04.findings(QUICK, broken(values, response)), "Simulated response").holds is False


def test_a_missing_simulation_is_left_out(values):
    """A cell that failed for a reason of the model is not compared, and nothing breaks."""

    def fails(v):
        v["fw-cam-0.8-64"] = {"error": "infeasible"}

    found = e04.findings(QUICK, broken(values, fails))
    check_findings(found)
    assert verdict(found, "Simulated costs").measured.startswith("2 values")
