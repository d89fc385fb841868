"""The lower bound V*: the numbers of MODEL.md, and the corners of the model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from malleable.contracts import Policy
from malleable.errors import InfeasibleError, MalleableError, ParameterError
from malleable.model import Workload, paper_workload
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


class TestCorners:
    """Single cases with a known answer."""

    def test_price_is_zero_when_peaks_fit(self):
        """With more cores than anybody can use the price is 0 and V* is the cost at the peak."""
        found = bound(gen.one_class({"kind": "rooftop", "cores": 4}, rate=0.5, mean=2.0, cost=3.0), 100)
        assert found.price == 0.0
        assert found.core_value == 0.0
        assert found.bound == pytest.approx(3.0 * 2.0 / 4.0, rel=1e-12)
        assert found.widths.tolist() == [4.0]
        assert found.effective_load == pytest.approx(0.01, rel=1e-12)

    def test_rooftop_needs_no_more_than_its_work(self):
        """A rooftop class is served at full width at any load below 1, since it wastes nothing."""
        for load in (0.1, 0.5, 0.99):
            found = bound(gen.one_class({"kind": "rooftop", "cores": 4}, cost=2.0).at(10, load), 10)
            assert found.bound == pytest.approx(2.0 / 4.0, rel=1e-10)

    def test_flat_speedup(self):
        """A job that cannot be sped up costs c·E[X]."""
        found = bound(
            gen.one_class({"kind": "table", "cores": [1, 2], "speedup": [1, 1]}, mean=0.3, cost=2.0), 5
        )
        assert found.bound == pytest.approx(0.6, rel=1e-12)
        assert found.price == 0.0

    def test_super_linear_load_above_one(self):
        """With s(2) = 3 a load of 1.2 is feasible: two cores do three cores' work."""
        workload = gen.one_class({"kind": "table", "cores": [1, 2], "speedup": [1, 3]}).at(4, 1.2)
        found = bound(workload, 4)
        assert found.bound == pytest.approx(1.0 / 3.0, rel=1e-9)
        with pytest.raises(InfeasibleError):
            bound(workload.at(4, 1.6), 4)

    def test_mixture_on_a_chord(self):
        """At a load between two widths of a table the bound is the mixture of both, worked out by hand."""
        # one class, load 1 of work per core: widths 1 (u=1, v=1) and 4 (u=1/2, v=2); n=1.5 halves the work
        workload = gen.one_class({"kind": "table", "cores": [1, 4], "speedup": [1, 2]}, rate=1.0, mean=1.0)
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
            gen.one_class({"kind": "power", "exponent": 0.5}, rate=1e300, mean=1e30)
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
