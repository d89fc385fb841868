"""Experiment 13: tails and fairness."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e13_tails as e13
from malleable.paper.experiments.e13_tails.findings import CLASSES
from malleable.paper.experiments.e13_tails.tails import tails
from support.paper_checks import broken, check_cells, check_findings, computed, verdict
from support.paper_numbers import interval, result

CHEAPEST, TAILS = "At load 0.25 WHAM has a lower", "At load 0.25 no rival"


@pytest.fixture(scope="module")
def values():
    return computed(e13)


def made_up():
    """Values of all cells at normal effort: every rival 10 % dearer and slower than WHAM."""

    def entries(level):
        return {c: [interval(level * (1 + i), 0.01) for i in range(3)] for c in CLASSES}

    values = {}
    for cell in e13.cells(NORMAL):
        mine = cell.arguments["policy"] == "wham"
        value = {"result": result(0.2 if mine else 0.22), "response": entries(1.0), "slowdown": entries(2.0)}
        if not mine:
            both = {"response": entries(0.1), "slowdown": entries(0.1)}
            value |= {"difference": interval(0.02, 0.001), "apart": both}
        values[cell.key] = value
    return values


def test_cells():
    """Cells have names and arguments that files can hold, at every effort, and 30 jobs per core."""
    check_cells(e13, (QUICK, NORMAL, FULL))
    for effort in (QUICK, NORMAL, FULL):
        for cell in e13.cells(effort):
            assert cell.arguments["jobs"] * cell.arguments["batches"] >= 30 * cell.arguments["cores"]


def test_everything_fits_together(values):
    """Series and columns are as long as they should be, also where a policy has no steady state."""
    findings = e13.findings(QUICK, values)
    check_findings(findings)
    assert [v.statement for v in findings.verdicts if v.holds is False] == []
    spoilt = made_up()
    spoilt["hell-0.25"]["result"]["stable"] = False
    spoilt["fw-cam-0.8"] = {"error": "no plan"}
    findings = e13.findings(NORMAL, spoilt)
    check_findings(findings)
    assert all(v.holds for v in findings.verdicts)
    assert "HELL" in verdict(findings, CHEAPEST).measured


def test_a_cheaper_policy_is_told():
    """One policy that costs less for sure turns the verdict of its load; an unclear one leaves it open."""

    def at(low, high):
        def spoil(v):
            v["sia-0.25"]["difference"] = {"mean": 0.5 * (low + high), "low": low, "high": high}

        findings = e13.findings(NORMAL, broken(made_up(), spoil))
        assert verdict(findings, "At load 0.8 WHAM").holds
        return verdict(findings, CHEAPEST).holds

    assert (at(0.001, 0.002), at(-0.001, 0.001), at(-0.002, -0.001)) == (True, None, False)


def test_a_policy_with_shorter_tails_is_told():
    """Shorter 99th percentiles in all classes turn the verdict; in two of three they do not."""

    def shorter(classes, half=0.01):
        def spoil(v):
            for c in classes:
                v["equi-0.25"]["apart"]["response"][c][-1] = interval(-0.05, half)

        return verdict(e13.findings(NORMAL, broken(made_up(), spoil)), TAILS)

    assert shorter(CLASSES).holds is False
    assert "shorter in all: EQUI" in shorter(CLASSES).measured
    assert shorter(CLASSES[:2]).holds is True
    assert shorter(CLASSES, half=0.1).holds is None


def test_unstable_policies_are_not_compared():
    """A policy without a steady state may have any percentiles."""

    def spoil(v):
        v["hell-0.25"]["result"]["stable"] = False
        v["hell-0.25"]["difference"] = interval(-0.1, 0.001)
        for c in CLASSES:
            v["hell-0.25"]["apart"]["response"][c][-1] = interval(-1.0, 0.01)

    findings = e13.findings(NORMAL, broken(made_up(), spoil))
    assert all(v.holds for v in findings.verdicts)


def test_percentiles_of_jobs_that_never_wait(values):
    """One core each at load 0.25: response times are sizes, here exponential, and slowdowns are 1."""
    found = values["srpt-0.25"]
    for name, mu in (("class-1", 5.0), ("class-3", 3.0)):
        for level, entry in zip((0.5, 0.95, 0.99), found["response"][name], strict=True):
            exact = -log(1.0 - level) / mu
            half = 0.5 * (entry["high"] - entry["low"])
            assert abs(entry["mean"] - exact) < 3.0 * half + 0.016 * exact
        assert [e["mean"] for e in found["slowdown"][name]] == pytest.approx([1.0] * 3, rel=0.016)


def test_percentiles_of_batches_are_those_of_the_run(values):
    """What batches add up to agrees with the result's own percentiles, up to the warm-up left out."""
    found = values["equi-0.25"]
    for c in found["result"]["classes"]:
        theirs = [c[key] for key in ("p50", "p95", "p99")]
        ours = [e["mean"] for e in found["response"][c["name"]]]
        assert ours == pytest.approx(theirs, rel=0.1)


def test_differences_are_paired(values):
    """A policy compared with itself under another name differs by nothing; others by what they differ."""
    same = tails("greedy:weight=1", 64, 0.25, jobs=400, batches=3, seed=5)
    other = tails("greedy", 64, 0.25, jobs=400, batches=3, seed=5)
    assert same["apart"] == other["apart"]
    for c in CLASSES:
        for i in range(3):
            entry = values["greedy-0.25"]["apart"]["response"][c][i]
            ours = values["wham-0.25"]["response"][c][i]["mean"]
            theirs = values["greedy-0.25"]["response"][c][i]["mean"]
            assert entry["mean"] == pytest.approx(theirs - ours, abs=1e-12)
            assert np.isfinite(entry["low"])
