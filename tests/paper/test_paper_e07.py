"""Experiment 7: from the bandit to WHAM."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e07_whittle as e07
from malleable.paper.experiments.e07_whittle import single_arm
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from support.paper_checks import broken, check_cells, check_findings, computed, verdict

WIDTHS, THRESHOLDS, INDEXABLE = "As α → 0 the best width", "As α → 0 a job is served", "Jobs are indexable"
FEW, MANY = "With fewer jobs than cores", "With more jobs than cores"


@pytest.fixture(scope="module")
def values():
    return computed(e07)


@pytest.fixture(scope="module")
def findings(values):
    return e07.findings(QUICK, values)


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e07, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series and columns are as long as they should be, and every verdict has its numbers."""
    check_findings(findings)


def test_verdicts(findings):
    """All that is exact holds; what is simulated is not refuted."""
    for start in (WIDTHS, THRESHOLDS, INDEXABLE, FEW, MANY):
        assert verdict(findings, start).holds, start
    assert [v.statement for v in findings.verdicts if v.holds is False] == []


@pytest.mark.parametrize("rent", [0.01, 0.0792672226826, 0.5, 3.0])
def test_widths_by_looking_are_those_of_the_formulas(rent):
    """Closed forms of MODEL.md §1.1: c p/((1−p) l) and √(c(1−q)/(q l)), at least 1."""
    power = single_arm.cheapest_width(Power(0.5), 2.0, rent)
    amdahl = single_arm.cheapest_width(Amdahl(0.2), 1.0, rent)
    assert power == pytest.approx(max(1.0, 2.0 / rent), rel=1e-5)
    assert amdahl == pytest.approx(max(1.0, np.sqrt(4.0 / rent)), rel=1e-5)


def test_widths_that_do_not_converge_are_told(values):
    """A solver that always returns one core turns the verdict on widths, and that alone."""

    def narrow(v):
        for i in range(3):
            for rows in v[f"actions-{i}"]["widths"]:
                rows[:] = [[1.0] * len(row) for row in rows]

    changed = e07.findings(QUICK, broken(values, narrow))
    assert verdict(changed, WIDTHS).holds is False
    assert verdict(changed, THRESHOLDS).holds


def test_jobs_that_go_on_waiting_are_told(values):
    """One point at the smallest discount where the job waits is enough."""

    def waits(v):
        v["actions-1"]["widths"][-1][0][-1] = 0.0

    assert verdict(e07.findings(QUICK, broken(values, waits)), WIDTHS).holds is False


def test_a_wrong_threshold_is_told(values):
    """An index of twice c/x turns the verdict on it."""

    def doubled(v):
        v["actions-0"]["indices"] = [[2.0 * i for i in row] for row in v["actions-0"]["indices"]]

    assert verdict(e07.findings(QUICK, broken(values, doubled)), THRESHOLDS).holds is False


@pytest.mark.parametrize(
    ("key", "value"),
    [("falling", 0), ("passive", 0), ("rises", -1), ("worst_loss", 1e-3), ("free_share", 0.5)],
)
def test_one_point_that_is_not_indexable_is_told(key, value, values):
    """A rise, a job served again, an action that is not the cheapest, cores unused although free."""

    def spoil(v):
        v["indexable-3"][key] = value if isinstance(value, float) else v["indexable-3"][key] - 1

    assert verdict(e07.findings(QUICK, broken(values, spoil)), INDEXABLE).holds is False


def test_a_value_that_value_iteration_does_not_find_is_told(values):
    """One size at which V is wrong, or above the cost of one action for life, turns the verdict."""
    for key, factor in (("optimal", 1.01), ("held", 0.98)):

        def spoil(v, key=key, factor=factor):
            v["values"][key][1][40] *= factor

        changed = e07.findings(QUICK, broken(values, spoil))
        assert verdict(changed, "The least discounted cost").holds is False


def test_rising_actions_are_counted(monkeypatch):
    """A solver whose action rises once, at one price, fails the grid's own count."""

    def rises(_speedup, x, _weight, l, _discount, *, constant=False):
        k = np.maximum(1.0, 1.0 / np.asarray(l)) + 0.0 * np.asarray(x)
        k[..., 7] = 0.5 * k[..., 8]
        return k

    monkeypatch.setattr(single_arm, "optimal_action", rises)
    found = single_arm.indexable({"kind": "power", "exponent": 0.5}, 1.0, [0.1], 5, 20)
    assert found["falling"] == found["steps"] - 5
    assert found["worst_loss"] > 0.01


def test_allocations_that_differ_are_told(values):
    """Half a core more at every discount turns the verdict of its mode only."""

    def moved(crowded):
        def change(v):
            for state in v["allocations"]:
                if state["crowded"] == crowded:
                    state["largest"] = [0.5] * 5
                    state["changed"] = [1] * 5

        return e07.findings(QUICK, broken(values, change))

    assert (verdict(moved(False), FEW).holds, verdict(moved(False), MANY).holds) == (False, True)
    assert (verdict(moved(True), FEW).holds, verdict(moved(True), MANY).holds) == (True, False)


def test_costs_that_differ_are_told(values):
    """A difference of 1 % for sure is no limit; one that may be 1 % or 0 is open."""

    def apart(low, high):
        def change(v):
            found = v["simulated-0.25"]
            cost = found["results"]["wham"]["cost"]["mean"]
            mean = 0.5 * (low + high)
            found["differences"]["whittle:alpha=0.01"] |= {
                "mean": mean * cost, "low": low * cost, "high": high * cost
            }  # fmt: skip

        return verdict(e07.findings(QUICK, broken(values, change)), "At load 0.25 the cost").holds

    assert apart(-1e-5, 1e-5) is True
    assert apart(0.009, 0.011) is False
    assert apart(-0.011, -0.009) is False
    assert apart(-0.01, 0.01) is None
