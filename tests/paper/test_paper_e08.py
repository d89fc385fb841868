"""Experiment 8: trajectories of the mean-field equation, and paths of the system over them."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e08_attractor as e08
from malleable.paper.experiments.e08_attractor import fluid_paths
from malleable.paper.experiments.e08_attractor.cells import CORES
from malleable.theory.fluid import Fluid
from support.paper_checks import broken, check_cells, check_findings, computed, verdict

PAPER, RANDOM = "Every trajectory of the paper", "Every trajectory of random"
RATE, FOLLOWS, POINT = "Trajectories approach", "From the start “crowded”", "The cost at the fixed point"


@pytest.fixture(scope="module")
def values():
    return computed(e08)


@pytest.fixture(scope="module")
def findings(values):
    return e08.findings(QUICK, values)


def test_cells():
    """Cells have names and arguments that files can hold, at every effort."""
    check_cells(e08, (QUICK, NORMAL, FULL))


def test_everything_fits_together(findings):
    """Series and columns are as long as they should be, and every verdict has its numbers."""
    check_findings(findings)


def test_verdicts(findings):
    """All trajectories end where they should; the system is not seen to stray."""
    for start in (PAPER, RANDOM, RATE, POINT):
        assert verdict(findings, start).holds, start
    assert verdict(findings, FOLLOWS).holds is not False


def test_the_verdict_says_what_is_proved(values, findings):
    """All settings here satisfy the theorem; one that did not would be called measured."""
    told = verdict(findings, PAPER).measured
    assert told.startswith("proved in 4 of 4 settings; ")

    def unproved(v):
        v["study-1-0.8"]["proved"] = False

    told = verdict(e08.findings(QUICK, broken(values, unproved)), PAPER).measured
    assert told.startswith("proved in 3 of 4 settings, measured in the others; ")


def test_the_bracket_holds_the_fixed_point(values):
    """The lower trajectory rises and the upper falls to the jobs at the fixed point (those on 64 cores)."""
    found = values["bracket-0.25"]
    fixed = np.array([1.0332, 1.8960, 1.4887]) / 64.0
    for side in ("lower", "upper"):
        assert np.array(found[side]["jobs"][-1]) == pytest.approx(fixed, rel=1e-3)


def test_the_fixed_point_and_its_rate(values):
    """MODEL.md §6: V*, the widths k*, and the slowest eigenvalue −2.897."""
    found = values["fluid-1"]
    assert found["bound"] == pytest.approx(0.1578484983857, rel=1e-10)
    assert found["slowest"] == pytest.approx(-2.897, abs=5e-4)
    k = np.array([5.4066663883, 25.2311098120, 7.1036764864])
    speeds = np.array([k[0] ** 0.3, k[1] ** 0.5, 1.0 / (0.2 + 0.8 / k[2])])
    loads = 0.25 * np.array([3.0, 50.0 / 3.0, 25.0 / 3.0]) / 28.0
    assert found["fixed"] == pytest.approx(loads / speeds, rel=1e-8)


def test_trajectories_solve_the_paper_s_equation(values):
    """ż = λp + zQ·s(g(l)): on the path from empty, class 1's slope is λ₁ − z₁μ₁s₁(k₁) with all cores let."""
    found = values["fluid-0"]
    t, z = np.array(found["times"]), np.array(found["jobs"][0])
    mu, rates = np.array([5.0, 1.8, 3.0]), 0.25 * 15.0 / 28.0 * np.array([1.0, 2.0, 5.0 / 3.0])
    for i in (3, 10, 40):
        widths = _market(z[i])
        assert z[i] @ widths == pytest.approx(1.0)
        speeds = np.array([widths[0] ** 0.3, widths[1] ** 0.5, 1.0 / (0.2 + 0.8 / widths[2])])
        slope = (z[i + 1] - z[i - 1]) / (t[i + 1] - t[i - 1])
        assert slope == pytest.approx(rates - z[i] * mu * speeds, abs=0.02 * rates.max())


def _market(jobs):
    """Widths at the price where all of one core is let, by bisection on the closed forms."""
    low, high = 1e-6, 1e6
    for _ in range(200):
        l = np.sqrt(low * high)
        k = np.maximum(1.0, [3.0 / (7.0 * l), 2.0 / l, np.sqrt(4.0 / l)])
        low, high = (l, high) if jobs @ k > 1.0 else (low, l)
    return k


def test_a_trajectory_that_does_not_arrive_is_told(values):
    """One start in one study is enough, as is one of the paths that are shown."""

    def strays(v):
        v["study-1-0.8"]["converged"] -= 1

    def stays(v):
        v["fluid-0"]["distances"][0][-1] = 0.01

    for change in (strays, stays):
        changed = e08.findings(QUICK, broken(values, change))
        assert verdict(changed, PAPER).holds is False
        assert verdict(changed, RANDOM).holds


def test_an_unstable_fixed_point_is_told(values):
    """An eigenvalue with a positive real part refutes the conjecture even if all starts arrive."""

    def unstable(v):
        v["random-0"][0]["slowest"] = 0.1

    assert verdict(e08.findings(QUICK, broken(values, unstable)), RANDOM).holds is False


def test_settings_that_cannot_be_integrated_are_told(values):
    """A batch of random workloads without an answer leaves the verdict open, if the others all arrive."""

    def lose(v):
        v["random-1"] = {"error": "the fluid equation cannot be integrated"}

    def lose_and_stray(v):
        lose(v)
        v["random-0"][0]["converged"] = 0

    lost = verdict(e08.findings(QUICK, broken(values, lose)), RANDOM)
    assert lost.holds is None
    assert "1 cells" in lost.measured
    assert verdict(e08.findings(QUICK, broken(values, lose_and_stray)), RANDOM).holds is False


def test_another_cost_or_rate_is_told(values):
    """A fixed point of another cost, and an eigenvalue off by 20 %, turn their verdicts."""

    def dearer(v):
        v["fluid-1"]["cost"] *= 1.001

    def slower(v):
        v["fluid-1"]["slowest"] *= 0.8

    assert verdict(e08.findings(QUICK, broken(values, dearer)), POINT).holds is False
    assert verdict(e08.findings(QUICK, broken(values, slower)), RATE).holds is False


@pytest.mark.parametrize(("power", "holds"), [(-0.5, True), (-0.25, False), (0.0, False), (-1.0, False)])
def test_the_power_of_the_deviation_decides(power, holds, values):
    """Deviations that fall as another power of n than −1/2 are told."""

    def change(v):
        for n in CORES["quick"]:
            v[f"system-0-{n}"]["deviations"] = [n**power * (1.0 + 0.01 * i) for i in range(4)]

    assert verdict(e08.findings(QUICK, broken(values, change)), FOLLOWS).holds is holds


def test_scattered_deviations_decide_nothing(values):
    """With an interval that reaches from −1/4 to −1 the verdict stays open."""

    def change(v):
        for n in CORES["quick"]:
            v[f"system-0-{n}"]["deviations"] = [n**-0.5 * f for f in (0.3, 0.8, 1.2, 1.7)]

    assert verdict(e08.findings(QUICK, broken(values, change)), FOLLOWS).holds is None


def test_the_crowd_is_there_at_time_0():
    """A path starts with as many jobs of each class as the start says, and in time with the system."""
    workload = fluid_paths.laws("phase type", 512, 0.25)
    fluid = Fluid(workload, Policy.of("wham"), 512.0)
    crowd = np.array([51.0, 154.0, 51.0, 51.0])
    times, jobs = fluid_paths._path(workload, fluid, 512, crowd, 1.0, 3)
    assert times[0] == 0.0
    assert jobs[0].tolist() == [51.0, 205.0, 51.0]
    assert (np.diff(times) >= 0.0).all()
    assert times[-1] == pytest.approx(1.0, abs=0.05)
    # About λ jobs per unit of time arrive and fewer leave early on, so numbers stay of the same size.
    assert (jobs[1] > 0.5 * jobs[0]).all()
