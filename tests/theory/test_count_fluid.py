"""The fluid equation of rules that are asked themselves: any class rule, a user's too, has a mean field."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from malleable import mean_field, simulate
from malleable.contracts import Allocation, Policy
from malleable.engine.rule_interface import COUNTS, FIFO, INDEX, POOLS, SHARE, ClassProgram
from malleable.errors import PolicyError, PolicyRaisedError, UnstableError, UnsupportedError
from malleable.model import JobClass, Workload, paper_workload
from malleable.policies.equi import Equi
from malleable.policies.greedy import Greedy
from malleable.policies.wham import Wham
from malleable.theory.class_speeds import class_speeds
from malleable.theory.count_fluid import CountFluid, bends_abruptly, fluid_of
from malleable.theory.fluid import Fluid
from support.examples import examples
from support.fluid_cases import situations
from support.shell import malleable

EQUI = """
    from dataclasses import dataclass
    import numpy as np
    from malleable.policies.base import SHARE, Allocation, ClassProgram, Policy

    def equal(counts, cores, table, out):
        for i in range(len(counts)):
            out[i] = cores / counts.sum()

    @dataclass(frozen=True)
    class Mine(Policy):
        part: float = 1.0

        def program(self, workload, cores):
            return ClassProgram(equal, np.zeros(1), SHARE)

        def allocate(self, jobs, cores, *, integer=False):
            return Allocation(np.full(len(jobs), cores / len(jobs)), None)
"""


@pytest.fixture
def mine(tmp_path):
    """EQUI as a user's file has it."""
    (tmp_path / "mine.py").write_text(textwrap.dedent(EQUI), encoding="utf-8")
    return f"{tmp_path / 'mine.py'}:Mine"


@dataclass(frozen=True)
class Asked(Policy):
    """A policy of the library without its demand, so that its rule is asked."""

    known: Any

    def program(self, workload, cores):
        return self.known.program(workload, cores)

    def allocate(self, jobs, cores, *, integer=False):
        return self.known.allocate(jobs, cores, integer=integer)


PAIRS = [(Asked(known), known) for known in (Wham(), Greedy(), Equi())]
NAMES = ["wham", "greedy", "equi"]


@dataclass(frozen=True)
class Rule(Policy):
    """A class rule of a user's."""

    function: Any
    discipline: int = SHARE

    def program(self, workload, cores):  # noqa: ARG002
        slots = (4,) * len(workload.classes) if self.discipline == POOLS else ()
        return ClassProgram(self.function, np.zeros(1), self.discipline, slots)

    def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002
        return Allocation(np.zeros(len(jobs)), None)


class TestTheKnown:
    """Asked at real-valued counts, the library's own rules give what their formulas give."""

    def test_equi_of_a_users_file(self, mine):
        """EQUI written as a user's file has EQUI's fixed point, eigenvalues, 1/n term and attractor."""
        made, known = (mean_field("paper", 64, 0.25, policy) for policy in (mine, "equi"))
        assert made.policy == "Mine"
        assert [c.name for c in made.classes] == ["class-1", "class-2", "class-3"]
        for one, other in zip(made.classes, known.classes, strict=True):
            assert one[1:] == pytest.approx(other[1:], rel=1e-9)
        assert made.cost == pytest.approx(known.cost, rel=1e-12)
        np.testing.assert_allclose(made.eigenvalues, known.eigenvalues, rtol=1e-8)
        assert made.stable
        assert made.refined.coefficient == pytest.approx(known.refined.coefficient, rel=1e-7)
        assert made.refined.applies
        assert (made.attractor.converged, made.attractor.left_domain) == (25, 0)
        assert math.isnan(made.price)
        times = [0.0, 0.2, 1.0]
        paths = [one.trajectory([40.0, 0.0, 0.0, 0.0], times).jobs for one in (made, known)]
        np.testing.assert_allclose(*paths, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize(("asked", "known"), PAIRS, ids=NAMES)
    @settings(max_examples=examples(4))
    @given(situation=situations())
    def test_fixed_points(self, asked, known, situation):
        """For mixed speedups and phase-type sizes, at any load, the fixed point is that of the formulas."""
        workload, cores = situation[0], math.ceil(situation[1])
        assume(asked.program(workload, cores).sees == COUNTS)
        made, expected = (fluid_of(workload, policy, cores) for policy in (asked, known))
        assert (type(made), type(expected)) == (CountFluid, Fluid)
        point = made.fixed_point()
        np.testing.assert_allclose(point.jobs, expected.fixed_point().jobs, rtol=1e-6)
        assert np.abs(made.drift(point.state)).max() <= 1e-6 * made.arrivals.max()

    @pytest.mark.parametrize(("asked", "known"), PAIRS, ids=NAMES)
    @pytest.mark.parametrize(("cores", "load"), [(64, 0.25), (1024, 0.7)])
    def test_expansion(self, asked, known, cores, load):
        """Eigenvalues agree to eight digits and the 1/n term to seven, and both apply."""
        made, expected = (mean_field("paper", cores, load, policy, starts=0) for policy in (asked, known))
        np.testing.assert_allclose(made.eigenvalues, expected.eigenvalues, rtol=1e-8)
        assert made.refined.coefficient == pytest.approx(expected.refined.coefficient, rel=1e-7)
        assert made.refined.overload == pytest.approx(expected.refined.overload, rel=1e-3)
        assert (made.refined.applies, expected.refined.applies) == (True, True)

    @pytest.mark.parametrize(
        ("load", "reason"),
        [(0.5516, "counts of class.* cross a kink or a jump"), (0.95, "jobs outnumber cores with probab")],
    )
    def test_where_the_expansion_fails(self, load, reason):
        """WHAM near one core for a class, and at loads near 1: the numbers' reason beside the formulas'."""
        made, known = (mean_field("paper", 64, load, policy, starts=0) for policy in PAIRS[0])
        assert not made.refined.applies
        assert not known.refined.applies
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(made.refined.reason)

    def test_phases(self):
        """With Erlang and hyperexponential sizes the curvature is that of the formulas, too."""
        rng = np.random.default_rng(3)
        sizes = [{"kind": "erlang", "stages": 3, "mean": 1.0}, {"kind": "exponential", "mean": 0.5}]
        workload = Workload(
            "phases",
            tuple(
                JobClass(str(i), {"kind": "poisson", "rate": 1.0}, size, {"kind": "power", "exponent": p})
                for i, (size, p) in enumerate(zip(sizes, (0.4, 0.8), strict=True))
            ),
        ).at(32, 0.4)
        made, known = (fluid_of(workload, policy, 32) for policy in PAIRS[0])
        point = known.fixed_point()
        root = rng.normal(size=(4, 4))
        W = root @ root.T
        np.testing.assert_allclose(
            made.curvature(point.state, W), known.curvature(point.state, W, point.market), rtol=1e-6
        )
        np.testing.assert_allclose(
            made.jacobian(point.state), known.jacobian(point.state, point.market), rtol=1e-7, atol=1e-9
        )

    def test_fcfs(self):
        """FCFS is a class rule: one core each is M/G/∞, so class i has load_i jobs and no 1/n term."""
        found = mean_field("paper", 64, 0.25, "fcfs", starts=3)
        assert [c.jobs for c in found.classes] == pytest.approx(paper_workload(64, 0.25).loads, rel=1e-9)
        assert found.refined.coefficient == pytest.approx(0.0, abs=1e-9)
        assert found.attractor.converged == 3

    @pytest.mark.parametrize("discipline", [INDEX, FIFO])
    def test_more_jobs_than_cores(self, discipline):
        """Where a rule is not asked, beyond a core for each job, jobs share the cores in time."""

        def one_each(counts, cores, table, out):
            out[:] = 1.0 if counts.sum() < cores else np.nan

        fluid = fluid_of(paper_workload(16), Rule(one_each, discipline), 16)
        np.testing.assert_allclose(fluid.market(np.array([10.0, 20.0, 2.0])).low, 0.5)
        np.testing.assert_allclose(fluid.market(np.array([1.0, 2.0, 2.0])).low, 1.0)


def shared(counts, cores, table, out):
    """Half of the cores for the first class while it is there, equal shares within."""
    others = counts[1:].sum()
    for i in range(len(counts)):
        if i == 0:
            out[i] = cores * (0.5 if others > 0.0 else 1.0) / max(counts[0], 1e-300)
        else:
            out[i] = cores * (0.5 if counts[0] > 0.0 else 1.0) / max(others, 1e-300)


def starving(counts, cores, table, out):
    """A hundredth of the cores for the second class."""
    for i in range(len(counts)):
        out[i] = cores * (0.01 if i == 1 else 0.495) / max(counts[i], 1e-300)


def fewest_first(counts, cores, table, out):
    """All cores for the class with the most jobs."""
    for i in range(len(counts)):
        out[i] = cores / counts[i] if i == np.argmax(counts) else 0.0


def less_on_few(counts, cores, table, out):
    """Equal shares, of which a job of a small system gets less."""
    for i in range(len(counts)):
        out[i] = cores / counts.sum() * (1.0 - 1.0 / (1.0 + cores))


def capped(counts, cores, table, out):
    """Equal shares of at most fourteen cores."""
    for i in range(len(counts)):
        out[i] = min(14.0, cores / counts.sum())


def too_much(counts, cores, table, out):
    out[:] = cores


def no_number(counts, cores, table, out):
    out[:] = np.nan


def complains(counts, cores, table, out):
    if counts[0] < 1000.0:
        raise ValueError("too few of them")


class TestOthers:
    """Rules that no formula knows."""

    def test_simulations_converge(self):
        """On many cores the simulated cost is the limit and its 1/n term, up to the interval."""
        found = mean_field("paper", 1024, 0.25, Rule(shared), starts=2)
        result = simulate("paper", 1024, Rule(shared), load=0.25, jobs=400_000)
        assert found.refined.applies
        assert found.refined.cost == pytest.approx(result.cost.mean, abs=0.003 * found.cost)
        assert abs(found.cost - result.cost.mean) > abs(found.refined.cost - result.cost.mean)
        assert found.attractor.converged == 2

    def test_a_rule_in_place_of_an_inherited_one(self):
        """A user's class that inherits a demand, but not the rule, is asked; one that brings both is not."""

        @dataclass(frozen=True)
        class OwnRule(Equi):
            def program(self, workload, cores):  # noqa: ARG002
                return ClassProgram(shared, np.zeros(1), SHARE)

        @dataclass(frozen=True)
        class OwnDemand(OwnRule):
            def buyers(self, workload):
                return Equi().buyers(workload)

        costs = [
            mean_field("paper", 1024, 0.25, policy, starts=0).cost for policy in (OwnRule(), Rule(shared))
        ]
        assert costs[0] == pytest.approx(costs[1], rel=1e-9)
        assert type(fluid_of(paper_workload(16), OwnDemand(), 16)) is Fluid

    @pytest.mark.parametrize(
        ("rule", "cores", "reason"),
        [
            (shared, 64, "counts of class 'class-1' cross a kink or a jump of the rule"),
            (less_on_few, 64, "does something else on twice the cores"),
            (capped, 64, "cross a kink or a jump of the rule"),
        ],
    )
    def test_why_there_is_no_expansion(self, rule, cores, reason):
        """Rules that jump where a class is empty, that have a kink, or that change with the cores."""
        refined = mean_field("paper", cores, 0.25, Rule(rule), starts=0).refined
        assert not refined.applies
        assert reason in refined.reason
        assert "twice" in reason or refined.coefficient is not None

    def test_a_class_that_starves(self):
        """Where a class has too few cores for its work, the error names it."""
        with pytest.raises(
            UnstableError, match=r"Rule lets class 'class-2' grow without bound: with .* jobs"
        ):
            mean_field("paper", 64, 0.25, Rule(starving))

    def test_answers_that_jump(self):
        """Where no trajectory can be followed it says so, within a limited number of questions."""
        with pytest.raises(UnsupportedError, match="no fixed point of Rule was found: its answers jump"):
            mean_field("paper", 64, 0.25, Rule(fewest_first))

    @pytest.mark.parametrize(
        ("rule", "kind", "words"),
        [
            (
                too_much,
                PolicyError,
                r"gave out more than 64 cores with [\d.]+ of class-1, .*per job 64, 64, 64",
            ),
            (no_number, PolicyError, r"returned NaN with .* of class-1, .* per job nan, nan, nan"),
            (complains, PolicyRaisedError, "raised ValueError: too few of them"),
        ],
    )
    def test_rules_that_are_wrong(self, rule, kind, words):
        """They end as in the simulator, with the counts that the rule was asked about."""
        with pytest.raises(kind, match=words):
            mean_field("paper", 64, 0.25, Rule(rule))

    @pytest.mark.parametrize(
        ("policy", "words"),
        [
            (Rule(capped, POOLS), "Rule keeps a queue for each class"),
            ("fw-cam", "fw-cam is not a class rule"),
            ("wham-fitted", "wham-fitted is not a class rule"),
            ("greedy:weight=c/x", "greedy"),
        ],
    )
    def test_what_is_no_class_rule(self, policy, words):
        """Pools, and policies that look at single jobs, have no equation of counts, and say so at once."""
        with pytest.raises(UnsupportedError, match=words):
            mean_field("paper", 64, 0.25, policy)

    def test_speeds_for_chains(self, mine):
        """The exact chain takes a user's class rule, too: EQUI's speeds at all counts, overload included."""
        counts = np.array([[1, 0, 0], [3, 2, 1], [9, 9, 9]], dtype=float)
        found, known = (
            class_speeds(Policy.of(name), paper_workload(8), 8)(counts) for name in (mine, "equi")
        )
        np.testing.assert_allclose(found[counts > 0.0], known[counts > 0.0], rtol=1e-12)

    def test_on_the_command_line(self, mine):
        """`malleable meanfield` takes the file; its JSON has the same keys, and no price."""
        arguments = ("paper", "-n", "64", "--load", "0.25", "--starts", "2", "--json", "--policy")
        found, known = (json.loads(malleable("meanfield", *arguments, name).out) for name in (mine, "equi"))
        assert found.keys() == known.keys()
        assert found["price"] is None
        assert found["cost"] == pytest.approx(known["cost"], rel=1e-12)


def test_kinks_are_told_from_curves():
    """Second differences tell kinks and jumps from curves, wherever they lie between two points."""
    x = np.linspace(0.3, 1.7, 65)
    smooth = np.column_stack([x**-0.7, np.exp(3.0 * x), np.sin(4.0 * x), x, np.ones_like(x)])
    assert not bends_abruptly(smooth).any()
    for at in np.linspace(0.5, 1.5, 23):
        assert bends_abruptly(np.column_stack([np.sqrt(x) + 0.1 * np.maximum(x - at, 0.0), x > at])).all()
