"""Experiment 5: near full load there is no room for parallelism."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.engine.records import bin_edges
from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e05_heavy_load as e05
from malleable.paper.experiments.e05_heavy_load.cells import bounds, over_load
from malleable.paper.experiments.shared.widths import Window, histograms, measured, share
from support.paper_checks import broken, check_cells, check_findings, computed, verdict


@pytest.fixture(scope="module")
def values():
    return computed(e05)


@pytest.fixture(scope="module")
def findings(values):
    return e05.findings(QUICK, values)


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e05, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series, intervals, notes and columns are as long as they should be."""
    check_findings(findings)


def test_all_verdicts_hold(findings):
    """On the policies as they are, even a quick look confirms the proposition."""
    assert [v.statement for v in findings.verdicts if not v.holds] == []


def test_bounds():
    """The paper's bound by hand; the sharper one is below it and leaves no cores over or under."""
    rows = bounds([0.8, 0.95])
    found = {(row["load"], row["k0"]): row for row in rows}
    # Amdahl with a sequential fifth is the best: s(4) = 2.5, so 4 cores take 1.6 of core-time per unit.
    assert found[0.8, 4.0]["paper"] == pytest.approx(0.25 / 0.6)
    assert found[0.95, 2.0]["paper"] == pytest.approx((1 / 0.95 - 1) / 0.2)
    assert all(row["sharp"] <= row["paper"] + 1e-12 for row in rows)
    # At load .8, k0 = 4: class 3, with 25/84 of the work, takes .6 per unit; the rest goes to class 2 at 1.
    third = 25 / 84
    assert found[0.8, 4.0]["sharp"] == pytest.approx(third + (0.25 - 0.6 * third) / 1.0)


def test_shares():
    """Bins inside a window count whole, bins across its edge by the part inside."""
    batches = np.zeros((2, 2, 5120))
    edges = np.ldexp(1.0 + np.arange(64) / 64, 0)
    batches[:, 0, 40 * 64] = 3.0, 1.0  # widths from 1 to 1 + 1/64
    batches[:, 1, 40 * 64 + 1] = 1.0, 3.0
    assert share(batches, Window(None, 1.0, edges[1])).mean == pytest.approx(0.5)
    assert share(batches, Window(0, 1.0, edges[1])).mean == pytest.approx(1.0)
    assert share(batches, Window(1, 1.0, (edges[1] + edges[2]) / 2)).mean == pytest.approx(0.5)
    assert share(batches, Window(None, 2.0, 1e12)).mean == 0.0


def test_work_is_counted_once():
    """The histogram holds all work after the warm-up: its total is the load times the time, nearly."""
    batches = histograms("equi", 16, 0.5, 20_000, 1)
    work = batches.sum(axis=(0, 2))
    assert work / work.sum() == pytest.approx(np.array([0.2, 10 / 9, 5 / 9]) / (28 / 15), rel=0.05)
    assert batches.sum() == pytest.approx(16_000 * 0.4, rel=0.05)  # 28/15 of work in 14/3 jobs


def test_more_cores_for_every_job_are_noticed(values):
    """A policy that did half of its work in parallel near full load would break bound and limit."""

    def parallel(v):
        for key in ("wham-64-0.950000", "wham-256-0.937500"):
            v[key]["shares"][1] = {"mean": 0.95, "low": 0.94, "high": 0.96}

    found = e05.findings(QUICK, broken(values, parallel))
    assert verdict(found, "The share beyond k0").holds is False
    assert verdict(found, "It is below the sharper").holds is False
    assert verdict(found, "On 64 cores: WHAM").holds is False
    assert verdict(found, "With ρ = 1 − 1/√n: WHAM").holds is False
    assert verdict(found, "On 64 cores: EQUI").holds


def test_the_sharper_bound_is_told_apart(values):
    """A share between the two bounds breaks only the sharper one."""

    def between(v):
        v["equi-64-0.800000"]["shares"][2] = {"mean": 0.4, "low": 0.39, "high": 0.41}

    found = e05.findings(QUICK, broken(values, between))
    assert verdict(found, "The share beyond k0").holds
    assert verdict(found, "It is below the sharper").holds is False


def test_a_share_that_does_not_fall_is_not_confirmed(values):
    """With the same unclear share at every load nothing is decided."""

    def flat(v):
        for n, load in over_load(QUICK):
            v[f"greedy-{n}-{load:.6f}"]["shares"][1] = {"mean": 0.1, "low": 0.0, "high": 0.2}

    assert verdict(e05.findings(QUICK, broken(values, flat)), "On 64 cores: GREEDY").holds is None


def test_one_core_each():
    """FCFS runs everything on one core: nothing beyond it, all of it near one."""
    found = measured("fcfs", 16, 0.7, 4_000, 1, [[None, 1.25, 1e12], [None, 0.9, 1.1]], distribution=True)
    assert [s["mean"] for s in found["shares"]] == [0.0, 1.0]
    assert found["distribution"][0]["width"][0] == 1.0
    assert found["distribution"][0]["share"][-1] == pytest.approx(1.0)


def test_all_the_work_is_no_more_than_all():
    """Work in every bin, in amounts that do not add up exactly: a share of 1 is 1 and not more."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        found = share(rng.random((20, 3, len(bin_edges()) - 1)), Window(None, 0.0, 1e300))
        assert 1.0 - 1e-12 < found.low <= 1.0
        assert 1.0 - 1e-12 < found.mean <= 1.0
