"""The lower bound V*: a convex solver as second opinion, and what must hold of any workload."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from malleable.errors import InfeasibleError
from malleable.model import Workload
from malleable.speedups.custom import Custom
from malleable.theory.relaxed import bound
from support import strategies as gen
from support.examples import examples

MOST = 1e70
"""More cores than the widest job has: with exponent 0.98 and load 0.05 that is 20⁵⁰."""


def convex_optimum(workload, cores):
    """V* by cvxpy: u is time and v core-time for a unit of work, in the set that the speedup allows."""
    import cvxpy as cp

    u, v, rules = [], [], []
    # Interior-point tolerances mean what they say near one, so the variables are scaled (by our own answer,
    # which moves neither the feasible set nor the optimum).
    ours = bound(workload, cores)
    for speedup, answer, mean in zip(workload.speedups, ours.classes, workload.mean_sizes, strict=True):
        keys = speedup.to_dict()
        scale = answer.response_time / mean
        time, usage = scale * cp.Variable(), scale * answer.cores * cp.Variable()
        match keys.pop("kind"):
            case "power":
                p = keys["exponent"]
                rules += [cp.PowCone3D(usage, time, cp.Constant(1.0), p), usage >= time]
            case "amdahl":
                q = keys["sequential"]
                rules += [q * cp.inv_pos(time) + (1.0 - q) * cp.inv_pos(usage) <= 1.0, usage >= time]
            case "rooftop":
                rules += [usage >= 1.0, time >= 1.0 / keys["cores"]]
            case "linear_power":
                kappa, p = keys["cores"], keys["exponent"]
                rules += [
                    cp.PowCone3D(usage, time, cp.Constant(kappa ** (p - 1.0)), p),
                    usage >= 1.0,
                ]
            case "table":
                k, s = np.array(keys["cores"]), np.array(keys["speedup"])
                share = cp.Variable(len(k), nonneg=True)
                rules += [cp.sum(share) == 1.0, time == share @ (1.0 / s), usage == share @ (k / s)]
        u.append(time)
        v.append(usage)
    loads, costs = workload.loads, workload.holding_costs
    weight = loads * costs / (ours.bound * workload.total_rate)
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(weight, cp.hstack(u)))),
        [*rules, cp.sum(cp.multiply(loads / cores, cp.hstack(v))) <= 1.0],
    )
    try:
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    except cp.error.SolverError:
        return None
    return problem.value * ours.bound if problem.status == cp.OPTIMAL else None


class TestSecondOpinion:
    """V* from an independent formulation."""

    @pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")
    @settings(max_examples=examples(8))
    @given(
        gen.workloads("power", "amdahl", "rooftop", "linear_power", "table", max_classes=3),
        st.integers(1, 200),
        gen.numbers(0.02, 0.97),
    )
    def test_convex_solver(self, workload, cores, load):
        """V* equals the optimum of the primal problem found by cvxpy, to the 1e-7 that it is good for."""
        workload = workload.at(cores, load)
        optimum = convex_optimum(workload, cores)
        assume(optimum is not None)  # the solver gave up on its own
        assert bound(workload, cores).bound == pytest.approx(optimum, rel=1e-7)

    @settings(max_examples=examples(10))
    @given(gen.workloads("usl", "power", "amdahl"), st.integers(1, 100), gen.numbers(0.05, 0.95))
    def test_primal_by_marginal_costs(self, workload, cores, load):
        """For smooth speedups V* is the cost where every class's widths obey c·f(k) = l (or k at an end)."""
        workload = workload.at(cores, load)

        def width(s, c, price):
            def marginal(power):  # sign of d/dk (c + l·k)/s(k)
                k = math.exp(power)
                value, slope = s(k), s.slope(k)
                return price * value - (c + price * k) * slope

            top = min(float(s.peak), MOST)
            if marginal(0.0) >= 0.0 or top <= 1.0:
                return 1.0
            last = math.log(top)
            return top if marginal(last) <= 0.0 else math.exp(brentq(marginal, 0.0, last, xtol=1e-13))

        def plan(price):
            k = [width(c.speedup, c.holding_cost, price) for c in workload.classes]
            s = [float(c.speedup(x)) for c, x in zip(workload.classes, k, strict=True)]
            usage = sum(load * x / y for load, x, y in zip(workload.loads, k, s, strict=True))
            cost = sum(h * c / y for h, c, y in zip(workload.loads, workload.holding_costs, s, strict=True))
            return usage, cost / workload.total_rate

        least, most = math.log(1.0 / MOST), math.log(1e9)
        price = least
        if plan(math.exp(least))[0] > cores:
            price = brentq(lambda x: plan(math.exp(x))[0] - cores, least, most, xtol=1e-13)
        assert bound(workload, cores).bound == pytest.approx(plan(math.exp(price))[1], rel=1e-8, abs=0.0)

    @pytest.mark.parametrize(
        "function",
        [
            pytest.param(f, id=name, marks=() if name in {"s_shaped", "falling"} else pytest.mark.slow)
            for name, f in gen.FUNCTIONS.items()
        ],
    )
    def test_callables_against_their_tables(self, function):
        """A callable's bound is that of a dense table of its values, up to the table's resolution."""
        k = np.unique(np.concatenate([np.linspace(1.0, 40.0, 1500), np.geomspace(40.0, 512.0, 300)]))
        curve = Custom(function, limit=512.0)
        measured = {"kind": "table", "cores": k.tolist(), "speedup": curve(k).tolist(), "hull": True}
        exact = bound(gen.one_class(curve, cost=2.0).at(20, 0.6), 20).bound
        dense = bound(gen.one_class(measured, cost=2.0).at(20, 0.6), 20).bound
        assert exact <= dense * (1.0 + 1e-9)
        assert exact == pytest.approx(dense, rel=1e-4)


ANY = ("power", "amdahl", "usl", "rooftop", "linear_power", "table")


class TestProperties:
    """What must hold for any workload."""

    @settings(max_examples=examples(8))
    @given(gen.workloads(*ANY), st.integers(1, 100), gen.numbers(0.05, 0.95), gen.numbers(1.0, 1e4))
    def test_scale_invariance(self, workload, cores, load, factor):
        """V*, widths and price stay when rates and n grow together."""
        small = bound(workload.at(cores, load), cores)
        large = bound(workload.at(cores * factor, load), cores * factor)
        assert large.bound == pytest.approx(small.bound, rel=1e-9)
        assert large.price == pytest.approx(small.price, rel=1e-6, abs=1e-12)

    @settings(max_examples=examples(12))
    @given(gen.workloads("power", "amdahl"), st.integers(2, 100), gen.numbers(0.1, 0.9))
    def test_shadow_price(self, workload, cores, load):
        """dV*/dn = −l*/λ, which `core_value` states."""
        workload = workload.at(cores, load)
        h = 1e-4 * cores
        found = bound(workload, cores)
        slope = (bound(workload, cores + h).bound - bound(workload, cores - h).bound) / (2.0 * h)
        assert slope == pytest.approx(-found.core_value, rel=1e-3, abs=1e-7 * found.bound / cores)
        assert found.core_value == pytest.approx(found.price / workload.total_rate, rel=1e-14)

    @settings(max_examples=examples(16))
    @given(gen.workloads(*ANY), st.integers(1, 60), gen.numbers(0.05, 0.95))
    def test_order_of_the_bounds(self, workload, cores, load):
        """Fewer choices cost more: the capped bound lies above V*, the integer bound above it; KKT holds."""
        found = bound(workload.at(cores, load), cores)
        assert found.bound <= found.bound_capped <= found.bound_integer
        assert found.kkt_residual < 1e-8
        assert found.effective_load <= 1.0 + 1e-9
        assert found.price >= 0.0
        assert all(c.cores >= 1.0 - 1e-12 for c in found.classes)

    @settings(max_examples=examples(6))
    @given(gen.workloads(*ANY), st.integers(1, 40), gen.numbers(0.05, 0.95))
    def test_monotone_in_cores(self, workload, cores, load):
        """More cores never cost more."""
        workload = workload.at(cores, load)
        values = [bound(workload, cores + extra) for extra in (0, 0.5, 1, 3, 10, 1000)]
        for attribute in ("bound", "bound_capped"):
            numbers = [getattr(value, attribute) for value in values]
            assert all(b <= a * (1.0 + 1e-10) for a, b in itertools.pairwise(numbers))
        prices = [value.price for value in values]
        assert all(b <= a * (1.0 + 1e-6) + 1e-12 for a, b in itertools.pairwise(prices))

    @settings(max_examples=examples(6))
    @given(gen.workloads(*ANY), st.integers(1, 60), gen.numbers(0.05, 0.95), gen.numbers(0.05, 0.95))
    def test_splitting_a_class(self, workload, cores, load, share):
        """Two classes that split the arrivals of one change no bound."""
        workload = workload.at(cores, load)
        rows = workload.to_dict()["classes"]
        first = rows[0]
        rate = first["arrivals"]["rate"]
        halves = [
            {**first, "name": f"part-{i}", "arrivals": {"kind": "poisson", "rate": rate * part}}
            for i, part in enumerate((share, 1.0 - share))
        ]
        split = Workload.from_dict({"classes": halves + rows[1:]})
        one, two = bound(workload, cores), bound(split, cores)
        for attribute in ("bound", "bound_capped", "bound_integer"):
            assert getattr(two, attribute) == pytest.approx(getattr(one, attribute), rel=1e-9)

    @settings(max_examples=examples(10))
    @given(gen.workloads(*ANY), st.integers(1, 30), gen.numbers(1.0, 30.0))
    def test_infeasible_says_what_would_do(self, workload, cores, load):
        """A load of one or more is an error whose n is the least that works."""
        workload = workload.at(cores, load)
        try:
            bound(workload, cores)
        except InfeasibleError as error:
            enough = int(re.search(r"at least (\d+) cores", error.hint)[1])
            assert enough > cores
            assert bound(workload, enough).bound > 0.0
            if all(s.most_efficient == 1.0 for s in workload.speedups):
                with pytest.raises(InfeasibleError):
                    bound(workload, max(enough - 1, 1) if enough - 1 > cores else cores)
        else:  # a super-linear start does more than one unit of work on a core
            assume(any(float(s(s.most_efficient)) > s.most_efficient * (1 + 1e-9) for s in workload.speedups))

    @settings(max_examples=examples(12))
    @given(gen.tables(integer=True), st.integers(1, 30), gen.numbers(0.1, 0.9))
    def test_integer_bound_of_integer_tables(self, keys, cores, load):
        """For tables whose corners are whole numbers the integer bound is the capped one."""
        workload = gen.one_class({"kind": "table", **keys}).at(cores, load)
        found = bound(workload, cores)
        assert found.bound_integer == pytest.approx(found.bound_capped, rel=1e-9)

    @settings(max_examples=examples(6))
    @given(gen.workloads("power", "amdahl", "usl"), st.integers(1, 30), gen.numbers(0.1, 0.9))
    def test_integer_bound_is_the_bound_of_integer_tables(self, workload, cores, load):
        """The integer bound is the capped bound of the speedups' values on whole cores."""
        workload = workload.at(cores, load)
        assume(bound(workload, cores).widths.max() < 150.0)
        k = np.arange(1.0, 600.0)
        rows = [
            gen.job_class(
                c.name,
                c.arrivals.rate,
                c.size.mean,
                {"kind": "table", "cores": k.tolist(), "speedup": c.speedup(k).tolist(), "hull": True},
                c.holding_cost,
            )
            for c in workload.classes
        ]
        expected = bound(Workload.from_dict({"classes": rows}), cores).bound_capped
        assert bound(workload, cores).bound_integer == pytest.approx(expected, rel=1e-8)
