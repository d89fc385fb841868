"""The lower bound V*: the numbers of MODEL.md, a convex solver as second opinion, and its invariances."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from malleable.contracts import Policy
from malleable.errors import InfeasibleError, MalleableError, ParameterError
from malleable.model import Workload, paper_workload
from malleable.speedups.custom import Custom
from malleable.theory.relaxed import bound
from support import strategies as gen

V_STAR = 0.1578484983857
RHO_VALUES = {0.05: 0.0561022325, 0.5: 0.2895272750, 0.7: 0.4075464972, 0.9: 0.5488438363}
GAPS = {
    "equi": 1.118885,
    "greedy": 1.011113,
    "greedy:weight=mu": 1.0904,
    "greedy:weight=c": 1.0260,
    "greedy:weight=cmu": 1.0069,
}


def single(speedup, *, rate=1.0, mean=1.0, cost=1.0):
    return Workload.from_dict({"classes": [gen.job_class("only", rate, mean, speedup, cost)]})


class TestPaper:
    """Numbers of MODEL.md §6 at ρ = 0.25."""

    def test_loads(self):
        """Loads (1/5, 10/9, 5/9), total 28/15, rate 14/3, base n 112/15."""
        workload = paper_workload()
        np.testing.assert_allclose(workload.loads, [1 / 5, 10 / 9, 5 / 9], rtol=1e-14)
        assert workload.total_load == pytest.approx(28 / 15, rel=1e-14)
        assert workload.total_rate == pytest.approx(14 / 3, rel=1e-14)
        assert workload.load(112 / 15) == pytest.approx(0.25, rel=1e-14)
        np.testing.assert_allclose(paper_workload(16).rates, workload.rates * 15 * 16 / 112, rtol=1e-13)

    def test_base_numbers(self):
        """V*, l*, k* at the paper's own n = 112/15, to the digits given."""
        found = bound(paper_workload(), 112 / 15)
        assert found.bound == pytest.approx(V_STAR, abs=5e-14)
        assert found.price == pytest.approx(0.0792672226826, abs=5e-14)
        np.testing.assert_allclose(found.widths, [5.4066663883, 25.2311098120, 7.1036764864], atol=5e-11)
        assert bound(paper_workload(64), 64).bound_integer == pytest.approx(0.1578894899, abs=5e-11)
        assert found.load == pytest.approx(0.25, rel=1e-12)
        assert found.effective_load == pytest.approx(1.0, rel=1e-10)
        assert found.kkt_residual < 1e-10

    @pytest.mark.parametrize(("load", "value"), RHO_VALUES.items())
    def test_over_the_load(self, load, value):
        """V* at other loads of the same mix."""
        assert bound(paper_workload(16, load), 16).bound == pytest.approx(value, abs=5e-11)

    @pytest.mark.parametrize(("cores", "value"), [(8, 0.2270396173), (16, 0.1703527048)])
    def test_capped(self, cores, value):
        """The bound under k ≤ n at small n."""
        found = bound(paper_workload(cores), cores)
        assert found.bound_capped == pytest.approx(value, abs=5e-11)
        assert found.bound == pytest.approx(V_STAR, abs=5e-13)

    @pytest.mark.parametrize("cores", [26, 27, 64, 1024])
    def test_cap_stops_to_matter(self, cores):
        """From 26 cores on the cap binds no class, so both bounds agree."""
        assert bound(paper_workload(cores), cores).bound_capped == pytest.approx(V_STAR, abs=5e-13)

    def test_cap_still_matters_at_25(self):
        """At 25 cores class 2 would like 25.23, so the cap still shows."""
        assert bound(paper_workload(25), 25).bound_capped > V_STAR * (1.0 + 1e-9)

    def test_one_core_each(self):
        """One core each costs 4.0425 V*."""
        workload = paper_workload()
        cost = float(workload.loads @ workload.holding_costs) / workload.total_rate
        assert cost / bound(workload, 112 / 15).bound == pytest.approx(4.0425, abs=5e-5)

    @pytest.mark.parametrize(("policy", "gap"), GAPS.items())
    def test_limits_of_rivals(self, policy, gap):
        """Limit cost of EQUI and GREEDY: Σ load_i c_i/s_i at the price where Σ load_i k_i/s_i = n."""
        workload, cores = paper_workload(), 112 / 15
        buyers = Policy.of(policy).buyers(workload)

        def speeds(k):
            return np.array([s(x) for s, x in zip(workload.speedups, k, strict=True)])

        def excess(log_price):
            k = buyers.demand(math.exp(log_price))
            return float(workload.loads @ (k / speeds(k))) - cores

        k = buyers.demand(math.exp(brentq(excess, -20, 20, xtol=1e-14)))
        cost = float(workload.loads @ (workload.holding_costs / speeds(k))) / workload.total_rate
        digits = len(str(gap).partition(".")[2])
        assert cost / V_STAR == pytest.approx(gap, abs=0.6 * 10**-digits)

    def test_response_times(self):
        """Class response times are E[X]/s(k*), and c-weighted they make up V*."""
        workload = paper_workload(64)
        found = bound(workload, 64)
        expected = [c.size.mean / c.speedup(k) for c, k in zip(workload.classes, found.widths, strict=True)]
        np.testing.assert_allclose([c.response_time for c in found.classes], expected, rtol=1e-9)
        np.testing.assert_allclose([c.jobs for c in found.classes], workload.rates * expected, rtol=1e-9)
        cost = sum(c.jobs * h for c, h in zip(found.classes, workload.holding_costs, strict=True))
        assert cost / workload.total_rate == pytest.approx(found.bound, rel=1e-9)

    def test_document(self):
        """The JSON document carries the keys that DESIGN.md promises."""
        document = bound(paper_workload(16), 16).to_dict()
        promised = "cores load bound bound_capped price effective_load classes"
        assert set(promised.split()) <= set(document)
        assert [set(c) for c in document["classes"]] == [{"name", "cores", "response_time", "jobs"}] * 3


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
    @settings(max_examples=20, deadline=None)
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

    @settings(max_examples=25, deadline=None)
    @given(gen.workloads("usl", "power", "amdahl"), st.integers(1, 100), gen.numbers(0.05, 0.95))
    def test_primal_by_marginal_costs(self, workload, cores, load):
        """For smooth speedups V* is the cost where every class's widths obey c·f(k) = l (or k at an end)."""
        workload = workload.at(cores, load)

        def width(s, c, price):
            def marginal(k):  # sign of d/dk (c + l·k)/s(k)
                value, slope = s(k), s.slope(k)
                return price * value - (c + price * k) * slope

            top = min(float(s.peak), 1e12)
            if marginal(1.0) >= 0.0 or top <= 1.0:
                return 1.0
            return top if marginal(top) <= 0.0 else brentq(marginal, 1.0, top, xtol=1e-13, rtol=1e-14)

        def plan(price):
            k = [width(c.speedup, c.holding_cost, price) for c in workload.classes]
            s = [float(c.speedup(x)) for c, x in zip(workload.classes, k, strict=True)]
            usage = sum(load * x / y for load, x, y in zip(workload.loads, k, s, strict=True))
            cost = sum(h * c / y for h, c, y in zip(workload.loads, workload.holding_costs, s, strict=True))
            return usage, cost / workload.total_rate

        if plan(1e-11)[0] <= cores:
            expected = plan(1e-11)[1]
        else:
            price = brentq(lambda x: plan(math.exp(x))[0] - cores, math.log(1e-11), math.log(1e9), xtol=1e-13)
            expected = plan(math.exp(price))[1]
        assert bound(workload, cores).bound == pytest.approx(expected, rel=1e-8)

    @pytest.mark.parametrize("function", gen.FUNCTIONS.values(), ids=list(gen.FUNCTIONS))
    def test_callables_against_their_tables(self, function):
        """A callable's bound is that of a dense table of its values, up to the table's resolution."""
        k = np.unique(np.concatenate([np.linspace(1.0, 40.0, 1500), np.geomspace(40.0, 512.0, 300)]))
        curve = Custom(function, limit=512.0)
        measured = {"kind": "table", "cores": k.tolist(), "speedup": curve(k).tolist(), "hull": True}
        exact = bound(single(curve, cost=2.0).at(20, 0.6), 20).bound
        dense = bound(single(measured, cost=2.0).at(20, 0.6), 20).bound
        assert exact <= dense * (1.0 + 1e-9)
        assert exact == pytest.approx(dense, rel=1e-4)


ANY = ("power", "amdahl", "usl", "rooftop", "linear_power", "table")


class TestProperties:
    """What must hold for any workload."""

    @settings(max_examples=20, deadline=None)
    @given(gen.workloads(*ANY), st.integers(1, 100), gen.numbers(0.05, 0.95), gen.numbers(1.0, 1e4))
    def test_scale_invariance(self, workload, cores, load, factor):
        """V*, widths and price stay when rates and n grow together."""
        small = bound(workload.at(cores, load), cores)
        large = bound(workload.at(cores * factor, load), cores * factor)
        assert large.bound == pytest.approx(small.bound, rel=1e-9)
        assert large.price == pytest.approx(small.price, rel=1e-6, abs=1e-12)

    @settings(max_examples=30, deadline=None)
    @given(gen.workloads("power", "amdahl"), st.integers(2, 100), gen.numbers(0.1, 0.9))
    def test_shadow_price(self, workload, cores, load):
        """dV*/dn = −l*/λ, which `core_value` states."""
        workload = workload.at(cores, load)
        h = 1e-4 * cores
        found = bound(workload, cores)
        slope = (bound(workload, cores + h).bound - bound(workload, cores - h).bound) / (2.0 * h)
        assert slope == pytest.approx(-found.core_value, rel=1e-3, abs=1e-7 * found.bound / cores)
        assert found.core_value == pytest.approx(found.price / workload.total_rate, rel=1e-14)

    @settings(max_examples=40, deadline=None)
    @given(gen.workloads(*ANY), st.integers(1, 60), gen.numbers(0.05, 0.95))
    def test_order_of_the_bounds(self, workload, cores, load):
        """Fewer choices cost more: the capped bound lies above V*, the integer bound above it; KKT holds."""
        found = bound(workload.at(cores, load), cores)
        assert found.bound <= found.bound_capped <= found.bound_integer
        assert found.kkt_residual < 1e-8
        assert found.effective_load <= 1.0 + 1e-9
        assert found.price >= 0.0
        assert all(c.cores >= 1.0 - 1e-12 for c in found.classes)

    @settings(max_examples=12, deadline=None)
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

    @settings(max_examples=15, deadline=None)
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

    @settings(max_examples=25, deadline=None)
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

    @settings(max_examples=30, deadline=None)
    @given(gen.tables(integer=True), st.integers(1, 30), gen.numbers(0.1, 0.9))
    def test_integer_bound_of_integer_tables(self, keys, cores, load):
        """For tables whose corners are whole numbers the integer bound is the capped one."""
        workload = single({"kind": "table", **keys}).at(cores, load)
        found = bound(workload, cores)
        assert found.bound_integer == pytest.approx(found.bound_capped, rel=1e-9)

    @settings(max_examples=12, deadline=None)
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


class TestCorners:
    """Single cases with a known answer."""

    def test_price_is_zero_when_peaks_fit(self):
        """With more cores than anybody can use the price is 0 and V* is the cost at the peak."""
        found = bound(single({"kind": "rooftop", "cores": 4}, rate=0.5, mean=2.0, cost=3.0), 100)
        assert found.price == 0.0
        assert found.core_value == 0.0
        assert found.bound == pytest.approx(3.0 * 2.0 / 4.0, rel=1e-12)
        assert found.widths.tolist() == [4.0]
        assert found.effective_load == pytest.approx(0.01, rel=1e-12)

    def test_rooftop_needs_no_more_than_its_work(self):
        """A rooftop class is served at full width at any load below 1, since it wastes nothing."""
        for load in (0.1, 0.5, 0.99):
            found = bound(single({"kind": "rooftop", "cores": 4}, cost=2.0).at(10, load), 10)
            assert found.bound == pytest.approx(2.0 / 4.0, rel=1e-10)

    def test_flat_speedup(self):
        """A job that cannot be sped up costs c·E[X]."""
        found = bound(single({"kind": "table", "cores": [1, 2], "speedup": [1, 1]}, mean=0.3, cost=2.0), 5)
        assert found.bound == pytest.approx(0.6, rel=1e-12)
        assert found.price == 0.0

    def test_super_linear_load_above_one(self):
        """With s(2) = 3 a load of 1.2 is feasible: two cores do three cores' work."""
        workload = single({"kind": "table", "cores": [1, 2], "speedup": [1, 3]}).at(4, 1.2)
        found = bound(workload, 4)
        assert found.bound == pytest.approx(1.0 / 3.0, rel=1e-9)
        with pytest.raises(InfeasibleError):
            bound(workload.at(4, 1.6), 4)

    def test_mixture_on_a_chord(self):
        """At a load between two widths of a table the bound is the mixture of both, worked out by hand."""
        # one class, load 1 a core of work: widths 1 (u=1, v=1) and 4 (u=1/2, v=2); n=1.5 halves the work
        workload = single({"kind": "table", "cores": [1, 4], "speedup": [1, 2]}, rate=1.0, mean=1.0)
        found = bound(workload, 1.5)
        assert found.bound == pytest.approx(0.5 * 1.0 + 0.5 * 0.5, rel=1e-10)
        assert found.effective_load == pytest.approx(1.0, rel=1e-10)
        assert found.price == pytest.approx(0.5, rel=1e-9)  # ν = (2−1)/(4·1−1·2)
        assert found.widths[0] == pytest.approx(1.5 / 0.75, rel=1e-9)

    @pytest.mark.parametrize("cores", [0, 0.5, -3, math.nan, math.inf, "many", None])
    def test_cores_must_be_a_number_of_at_least_one(self, cores):
        """Anything but a finite number of at least 1 core is an error of ours."""
        with pytest.raises(ParameterError, match="cores must be"):
            bound(paper_workload(), cores)

    def test_load_of_exactly_one_up_to_rounding(self):
        """0.7 + 0.2 + 0.1 is a hair below 1: infeasible on one core, and the hint does not say one core."""
        rows = [
            gen.job_class(f"c{x}", x, 1.0, {"kind": "power", "exponent": 0.5}, 1.0) for x in (0.7, 0.2, 0.1)
        ]
        workload = Workload.from_dict({"classes": rows})
        with pytest.raises(InfeasibleError, match="at least 2 cores"):
            bound(workload, 1)

    def test_astronomic_load(self):
        """A load beyond all numbers is an error of ours."""
        with pytest.raises(MalleableError, match="beyond the range"):
            single({"kind": "power", "exponent": 0.5}, rate=1e300, mean=1e30)
        many = [
            gen.job_class(f"c{i}", 1e150, 1e100, {"kind": "power", "exponent": 0.5}, 1.0) for i in range(3)
        ]
        with pytest.raises(InfeasibleError):
            bound(Workload.from_dict({"classes": many}), 8)

    def test_huge_machine(self):
        """A million cores at a load of one in a million: prices far from 1 are found."""
        found = bound(paper_workload(1e6, 1e-6), 1e6)
        assert found.kkt_residual < 1e-9
        assert found.effective_load == pytest.approx(1.0, rel=1e-9)

    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    def test_costs_are_a_unit(self, scale):
        """Multiplying all holding costs multiplies V* and the price, and changes no width."""
        rows = paper_workload(16).to_dict()["classes"]
        for row in rows:
            row["holding_cost"] = row.get("holding_cost", 1.0) * scale
        one, two = bound(paper_workload(16), 16), bound(Workload.from_dict({"classes": rows}), 16)
        assert two.bound == pytest.approx(one.bound * scale, rel=1e-10)
        assert two.price == pytest.approx(one.price * scale, rel=1e-8)
        np.testing.assert_allclose(two.widths, one.widths, rtol=1e-8)
