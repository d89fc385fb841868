"""Experiment 9: rivals against the lower bound."""

from __future__ import annotations

import pytest

from malleable.model import paper_workload
from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e09_rivals as e09
from malleable.paper.experiments.e09_rivals.cells import limits
from malleable.paper.experiments.shared.policies import POLICIES
from malleable.paper.simulation_cells import compared
from malleable.policies.base.class_priority import parallelism
from support.paper_checks import broken, check_cells, check_findings, verdict
from support.paper_numbers import comparison

KNOWN = limits()
LOWEST = KNOWN["bound"]
JOB_RULES = ("knee", "hesrpt", "lpf", "pollux", "sia", "greedy:weight=c/x", "hell")
START = {p: f"{name} is not" for p, (name, _) in POLICIES.items()}


def cost(policy, n, margins):
    """WHAM's cost as it is for many cores, and others above it by their margin."""
    return LOWEST + 1.425 / n + LOWEST * margins.get(policy, lambda _: 0.1)(n) * (policy != "wham")


def made_up(margins=None, unstable=(), half=1e-5):
    """Values of all cells at normal effort; margins over WHAM by policy, as functions of n."""
    margins = margins or {}
    values = {"limits": KNOWN}
    for cell in e09.cells(NORMAL):
        if cell.work is compared:
            n = cell.arguments["cores"]
            costs = {p: cost(p, n, margins) for p in cell.arguments["policies"]}
            values[cell.key] = comparison(costs, half, unstable if n > 32 else (), LOWEST)
    return values


def test_cells():
    """Cells have names and arguments that files can hold, at every effort, and 30 jobs per core."""
    check_cells(e09, (QUICK, NORMAL, FULL))
    for effort in (QUICK, NORMAL, FULL):
        for cell in e09.cells(effort):
            if cell.work is compared:
                assert cell.arguments["jobs"] >= 30 * cell.arguments["cores"]


def test_everything_fits_together():
    """Series and columns are as long as they should be; a policy without a steady state leaves gaps."""
    for values in (made_up(), made_up(unstable=("hell", "knee:alpha=0.003"))):
        check_findings(e09.findings(NORMAL, values))


def test_limits():
    """MODEL.md §6: limits over V*; HELL's class 2 fills the cores at (28/15 / (0.25·10/9))² = 45.2."""
    ratios = {"equi": 1.118885, "greedy": 1.011113, "greedy:weight=mu": 1.0904, "greedy:weight=cmu": 1.0069}
    for policy, ratio in ratios.items():
        assert KNOWN[policy] / LOWEST == pytest.approx(ratio, abs=6e-5)
    assert KNOWN["crowded"] == pytest.approx(45.1584)


def test_rivals_above_are_not_optimal():
    """A margin of 10 % at every n is no mean-field optimum, and WHAM's cost tends to V*."""
    findings = e09.findings(NORMAL, made_up())
    assert [v.statement for v in findings.verdicts if v.holds is not True] == []
    assert verdict(findings, "WHAM's cost").holds


@pytest.mark.parametrize("policy", JOB_RULES)
def test_a_margin_that_vanishes_is_told(policy):
    """A job rule that is 30 % above WHAM on 16 cores, but ever nearer, may be optimal: the verdict turns."""
    findings = e09.findings(NORMAL, made_up({policy: lambda n: 5.0 / n}))
    assert verdict(findings, START[policy]).holds is False
    assert sum(v.holds is False for v in findings.verdicts) == 1


@pytest.mark.parametrize("policy", JOB_RULES)
def test_a_margin_that_falls_slowly_stays_open(policy):
    """A margin of n^(β − 1), like FW-CAM's, vanishes although a + b/n + c/n² would not say so."""
    findings = e09.findings(NORMAL, made_up({policy: lambda n: n**-0.2}))
    assert verdict(findings, START[policy]).holds is None


@pytest.mark.parametrize("policy", JOB_RULES)
def test_a_margin_that_is_not_clear_stays_open(policy):
    """With wide intervals nothing is decided."""
    findings = e09.findings(NORMAL, made_up({policy: lambda _: 0.004}, half=2e-3))
    assert verdict(findings, START[policy]).holds is None


def test_a_formula_that_gives_the_bound_is_told():
    """If EQUI's mean-field limit were V*, simulations above it would not make it suboptimal."""

    def optimal(v):
        v["limits"] = {**v["limits"], "equi": LOWEST}

    findings = e09.findings(NORMAL, broken(made_up(), optimal))
    assert verdict(findings, START["equi"]).holds is False


def test_instability_counts():
    """A policy that is unstable on many cores is not optimal, whatever its numbers."""
    findings = e09.findings(NORMAL, made_up({"hell": lambda _: -0.1}, unstable=("hell",)))
    found = verdict(findings, START["hell"])
    assert found.holds
    assert "stable up to 32 cores" in found.measured


def test_wham_that_does_not_converge_is_told():
    """A limit 2 % above V* turns WHAM's own verdict."""

    def dearer(v):
        for n in (64, 128, 256, 1024, 4096):
            for key in ("mean", "low", "high"):
                v[f"counts-{n}"]["results"]["wham"]["cost"][key] += 0.02 * LOWEST

    assert verdict(e09.findings(NORMAL, broken(made_up(), dearer)), "WHAM's cost").holds is False


def test_a_setting_that_beats_wham_is_told():
    """One α of KNEE below WHAM's cost turns the verdict on its settings."""
    findings = e09.findings(NORMAL, made_up({"knee:alpha=0.006": lambda _: -0.01}))
    assert verdict(findings, "No setting of KNEE").holds is False
    assert verdict(findings, "No setting of LPF").holds


def test_lpf_costs_what_its_widths_say():
    """On many cores no job waits under LPF, so the cost is (1/λ) Σ c_i load_i/s_i(κ_i), s(κ) = κ/2."""
    workload = paper_workload(128, 0.25)
    speeds = [0.5 * parallelism(s, 0.5) for s in workload.speedups]
    assert speeds == pytest.approx([0.5 * 2.0 ** (1.0 / 0.7), 2.0, 3.0])
    exact = float(workload.holding_costs @ (workload.loads / speeds)) / workload.total_rate
    assert exact / LOWEST == pytest.approx(1.9615, abs=1e-4)
    found = compared(["wham", "lpf"], 128, 0.25, jobs=20_000, seed=1)["results"]["lpf"]["cost"]
    assert found["mean"] == pytest.approx(exact, rel=2e-3)


def test_hell_is_unstable_beyond_45_cores():
    """Work of class 2 piles up on 128 cores, and does not on 16."""
    for n, stable in ((16, True), (128, False)):
        found = compared(["wham", "hell"], n, 0.25, jobs=5_000, seed=1)
        assert found["results"]["hell"]["stable"] is stable
