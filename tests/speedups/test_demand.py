"""The widths worth buying at a price: brute force, closed forms, tables and their hulls."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.speedups.amdahl import Amdahl
from malleable.speedups.custom import Custom
from malleable.speedups.power import Power
from malleable.speedups.table import Table
from malleable.speedups.usl import Usl
from support import strategies as gen
from support.examples import examples
from support.speedup_examples import KINDS, fine_grid

A100 = Path(__file__).parents[3] / "shared" / "data" / "a100"


class TestDemand:
    """Demand is defined as argmin over k ≥ 1 of (c + l·k)/s(k)."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_equals_brute_force(self, kind):
        """At every price the width bought costs no more than the best of a fine grid."""

        @settings(max_examples=examples(8) if kind == "custom" else 40)
        @given(gen.cases(kind), gen.numbers(1e-4, 1e2), gen.numbers(1e-2, 1e2))
        def check(case, price, weight):
            s = case.speedup
            bought = float(s.demand(price, weight))
            assert 1.0 <= bought <= s.peak * (1.0 + 1e-12)
            grid = fine_grid(s, getattr(s, "cores", ()) if kind == "table" else [float(s.most_efficient)])
            best = min((weight + price * k) / case.reference(k) for k in grid.tolist())
            assert (weight + price * bought) / case.reference(bought) <= best * (1.0 + 1e-9)

        check()

    @pytest.mark.parametrize("kind", KINDS)
    def test_falls_with_the_price(self, kind):
        """A higher price never makes a job want more cores, and a higher weight never fewer."""

        @settings(max_examples=examples(8))
        @given(gen.cases(kind))
        def check(case):
            prices = np.geomspace(1e-5, 1e4, 120)
            # The callables are bisected numerically, hence the slack.
            for method in (case.speedup.demand, case.speedup.work_demand):
                bought = method(prices)
                assert np.all(np.diff(bought) <= 1e-6 * bought[1:])
                weighted = method(0.1, np.geomspace(1e-3, 1e3, 60))
                assert np.all(np.diff(weighted) >= -1e-6 * weighted[1:])

        check()

    @pytest.mark.parametrize("kind", KINDS)
    def test_work_demand_equals_brute_force(self, kind):
        """GREEDY's purchase maximises w·s(k) − l·k over widths at least the most efficient."""

        @settings(max_examples=examples(8) if kind == "custom" else 40)
        @given(gen.cases(kind), gen.numbers(1e-3, 1e1), gen.numbers(1e-1, 1e1))
        def check(case, price, weight):
            s = case.speedup
            bought = float(s.work_demand(price, weight))
            assert s.most_efficient * (1.0 - 1e-12) <= bought <= s.peak * (1.0 + 1e-12)
            grid = fine_grid(s, getattr(s, "cores", ()) if kind == "table" else ())
            grid = grid[grid >= s.most_efficient]
            best = max((weight * case.reference(k) - price * k for k in grid.tolist()), default=-np.inf)
            value = weight * case.reference(bought) - price * bought
            assert value >= best - 1e-9 * (abs(best) + price * bought)

        check()

    @settings(max_examples=examples(16))
    @given(gen.numbers(1e-3, 10.0), gen.numbers(0.05, 20.0), gen.numbers(0.05, 0.95))
    def test_closed_forms(self, price, weight, share):
        """Power and Amdahl demand are the closed forms of MODEL.md §1.1, threshold c·f(1) included."""
        power = weight * share / ((1.0 - share) * price)
        amdahl = math.sqrt(weight * (1.0 - share) / (share * price))
        assert Power(share).demand(price, weight) == pytest.approx(max(1.0, power), rel=1e-14)
        assert Amdahl(share).demand(price, weight) == pytest.approx(max(1.0, amdahl), rel=1e-14)

    @settings(max_examples=examples(24))
    @given(
        st.floats(0.0, 0.95),
        st.one_of(st.floats(1e-12, 3.0), st.floats(-300, -1).map(lambda e: 10.0**e)),
        gen.numbers(1e-6, 1e4),
    )
    def test_usl_solves_its_equation(self, sigma, kappa, price):
        """USL demand is the root of f(k) = l for any coherency, however small, or 1 if there is none."""
        k = float(Usl(sigma, kappa).demand(price))
        # (1−σ−κk²) − l·k²·(σ+2κk−κ), whose sign says whether k is too narrow
        left, right = 1.0 - sigma - kappa * k * k, price * k * k * (sigma - kappa + 2.0 * kappa * k)
        if k == 1.0:
            assert left <= right * (1.0 + 1e-9) + 1e-12
        else:
            assert left == pytest.approx(right, rel=1e-6, abs=1e-9)

    def test_usl_without_coherency_is_amdahl(self):
        """USL with κ = 0 is Amdahl's law with q = σ."""
        prices = np.geomspace(1e-6, 1e3, 50)
        np.testing.assert_allclose(Usl(0.2, 0.0).demand(prices), Amdahl(0.2).demand(prices), rtol=1e-13)
        np.testing.assert_allclose(
            Usl(0.2, 0.0).work_demand(prices), Amdahl(0.2).work_demand(prices), rtol=1e-9
        )

    @pytest.mark.parametrize("exponent", [0.2, 0.5, 0.8])
    def test_callables_match_the_closed_form(self, exponent):
        """A power law given as a Python function buys what the closed form buys."""
        s = Custom(lambda k: k**exponent)
        prices = np.geomspace(1e-3, 10.0, 40)
        np.testing.assert_allclose(s.demand(prices), Power(exponent).demand(prices), rtol=1e-6)
        exact = np.minimum(Power(exponent).work_demand(prices), s.limit)
        np.testing.assert_allclose(s.work_demand(prices), exact, rtol=1e-6)

    def test_the_right_one_of_two_valleys(self):
        """Where two valleys of a callable tie up to rounding of the grid, the better one is bought."""
        s = Custom(gen.with_dip, 64.0)
        k = np.linspace(1.0, 64.0, 6301)
        speed = gen.with_dip(k)
        for price in np.geomspace(0.02, 2.0, 120):
            bought = float(s.demand(price))
            best = float(((1.0 + price * k) / speed).min())
            assert (1.0 + price * bought) / float(gen.with_dip(bought)) <= best * (1.0 + 1e-10)

    def test_super_linear_start_is_a_block(self):
        """With s(2) > 2 no job ever buys one core."""
        s = Table([1, 2, 3], [1, 2.5, 2.6])
        assert s.most_efficient == 2.0
        assert s.demand(1e9) == 2.0

    def test_a_table_with_a_dent_is_not_concave(self):
        """A table below its own hull says so, and buys hull vertices only."""
        s = Table([1, 2, 4, 6], [1, 1, 6, 6.5])
        assert not s.concave
        assert set(s.demand(np.geomspace(1e-4, 1e4, 200)).tolist()) == {4.0, 6.0}

    def test_edges_sell_at_their_index(self):
        """A table moves from k to k' exactly at ν = c(s'−s)/(k's − ks')."""
        s = Table([1, 2, 4], [1, 1.8, 3.0])
        first, second = 0.8 / (2 * 1 - 1 * 1.8), 1.2 / (4 * 1.8 - 2 * 3.0)
        for weight in (0.5, 1.0, 3.0):
            for price, width in (
                (first * 1.001, 1),
                (first * 0.999, 2),
                (second * 1.001, 2),
                (second * 0.999, 4),
            ):
                assert s.demand(price * weight, weight) == width


class TestHull:
    """`hull = true` makes the speedup its least concave, non-falling majorant."""

    @settings(max_examples=examples(24))
    @given(gen.tables())
    def test_table_is_its_hull(self, keys):
        """Against the naive O(n²) mixture of widths; never below a measured point; concave; not falling."""
        s = Table(**{**keys, "hull": True})
        k = np.unique(np.concatenate([np.linspace(1.0, keys["cores"][-1] + 2.0, 200), keys["cores"]]))
        naive = np.array([gen.table(x, **{**keys, "hull": True}) for x in k.tolist()])
        np.testing.assert_allclose(s(k), naive, rtol=1e-11)
        assert s.concave
        assert np.all(s(np.array(keys["cores"])) >= np.array(keys["speedup"]) * (1.0 - 1e-11))

    @settings(max_examples=examples(24))
    @given(gen.tables(monotone=True), gen.numbers(1e-3, 1e2))
    def test_hull_changes_no_demand(self, keys, price):
        """The widths worth buying are hull vertices whether or not the table is replaced by its hull."""
        raw, hull = Table(**{**keys, "hull": False}), Table(**{**keys, "hull": True})
        for s in (raw, hull):
            bought = float(s.demand(price))
            assert bought in keys["cores"]
        cost = [(1.0 + price * float(s.demand(price))) / float(raw(s.demand(price))) for s in (raw, hull)]
        assert cost[0] == pytest.approx(cost[1], rel=1e-11)

    @pytest.mark.skipif(not A100.is_dir(), reason=f"measured curves are not at {A100}")
    @pytest.mark.parametrize(
        "name",
        ["bert", "deepspeech2", "gpt2", "inception3", "resnet50", "resnet50_cifar10", "vgg16"],
    )
    def test_measured_curves(self, name):
        """Real curves, holes dropped and divided by one GPU, give sane hulls."""
        with (A100 / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        loaded = 0
        for row in rows:
            points = [(float(k), float(v)) for k, v in row.items() if k.isdigit() and v and float(v) > 0.0]
            if not points or points[0][0] != 1.0:
                continue  # nothing to be relative to
            cores, rate = map(np.array, zip(*points, strict=True))
            s = Table(cores, rate / rate[0], hull=True)
            widths, speeds, prices = s.pricing
            assert np.all(np.diff(widths) > 0.0)
            assert np.all(np.diff(speeds) > 0.0)
            assert np.all(np.diff(np.diff(speeds) / np.diff(widths)) <= 0.0)
            assert np.all(np.diff(prices) <= 0.0)
            assert np.all(s(cores) >= rate / rate[0] * (1.0 - 1e-12))
            assert s.concave
            assert set(widths) <= set(cores)
            assert s.peak == cores[np.argmax(rate)]
            loaded += 1
        assert loaded
