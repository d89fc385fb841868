"""Every speedup family keeps the contract `Speedup`, and its numbers agree with naive ones.

The conformance tests list the catalog: a family without an example here fails.
"""

from __future__ import annotations

import csv
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Speedup
from malleable.errors import MalleableError, ParameterError, UnknownKindError, WorkloadError
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.base.stack import Stack
from malleable.speedups.custom import Custom
from malleable.speedups.linear_power import LinearPower
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from malleable.speedups.table import Table
from malleable.speedups.usl import Usl
from support import strategies as gen

KINDS = sorted(catalog.kinds("speedups"))
A100 = Path(__file__).parents[3] / "shared" / "data" / "a100"

EXAMPLES = {
    "power": [{"exponent": 0.3}, {"exponent": 0.97}, {"exponent": 1e-3}],
    "amdahl": [{"sequential": 0.2}, {"sequential": 0.999}, {"sequential": 1e-4}],
    "usl": [
        {"contention": 0.05, "coherency": 0.001},
        {"contention": 0.2, "coherency": 0.0},
        {"contention": 0.0, "coherency": 0.01},
        {"contention": 0.7, "coherency": 0.9},
        {"contention": 0.1, "coherency": 1e-80},
    ],
    "rooftop": [{"cores": 4}, {"cores": 2.5}, {"cores": 1}],
    "linear_power": [{"cores": 4, "exponent": 0.5}, {"cores": 1, "exponent": 0.5}],
    "table": [
        {"cores": [1], "speedup": [1]},
        {"cores": [1, 2, 4, 8], "speedup": [1, 1.8, 3.0, 4.2]},
        {"cores": [1, 2, 4, 8], "speedup": [1, 1.0, 1.0, 1.0]},
        {"cores": [1, 2, 4, 8], "speedup": [1, 0.9, 0.8, 0.7], "hull": True},
        {"cores": [1, 2, 4, 8], "speedup": [1, 1.9, 1.5, 2.5], "hull": True},
        {"cores": [1, 2, 3], "speedup": [1, 2.5, 2.6]},
        {"cores": [1, 2, 4, 6], "speedup": [1, 1, 6, 6.5]},
        {"cores": [1, 2.5, 7], "speedup": [1, 2.5, 4]},
    ],
    "custom": [{"function": f, "limit": 512} for f in gen.FUNCTIONS.values()],
}


def made(kind, parameters):
    return catalog.find("speedups", kind).from_parameters(parameters)


def all_examples(*kinds):
    return [
        pytest.param(kind, keys, id=f"{kind}-{i}")
        for kind in (kinds or KINDS)
        for i, keys in enumerate(EXAMPLES.get(kind, [None]))
    ]


def reference(kind, parameters):
    return np.vectorize(lambda k: gen.REFERENCES[kind](float(k), **parameters), otypes=[float])


def fine_grid(speedup, extra=()):
    """Widths from 1 to the peak (or very far), close together, with the given ones among them."""
    far = min(float(speedup.peak), 1e6)
    grid = np.concatenate([np.geomspace(1.0, far, 1500), np.linspace(1.0, min(far, 40.0), 1000), extra])
    return np.unique(grid[(grid >= 1.0) & (grid <= far)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_family_has_an_example(kind):
    """A family found by the catalog has examples, a random strategy and a reference here."""
    assert EXAMPLES[kind]
    assert kind in gen.PARAMETERS
    assert kind in gen.REFERENCES


@pytest.mark.parametrize(("kind", "keys"), all_examples())
class TestConformance:
    """What every family promises."""

    def test_one_core_is_one(self, kind, keys):
        """s(1) = 1."""
        assert made(kind, keys)(1.0) == pytest.approx(1.0, abs=1e-9)

    def test_below_one_core_the_core_is_shared(self, kind, keys):
        """s(k) = k, slope 1 and efficiency 1 on [0, 1): never k^p there."""
        s = made(kind, keys)
        k = np.array([0.0, 1e-12, 0.25, 0.5, 1.0 - 1e-12])
        np.testing.assert_array_equal(s(k), k)
        np.testing.assert_array_equal(s.slope(k), np.ones_like(k))
        np.testing.assert_allclose(s.efficiency(k), 1.0, rtol=1e-15)

    def test_values(self, kind, keys):
        """s agrees with the formula of MODEL.md written out naively."""
        s = made(kind, keys)
        k = np.concatenate([np.linspace(1.0, 20.0, 77), np.geomspace(20.0, 500.0, 30)])
        np.testing.assert_allclose(s(k), reference(kind, keys)(k), rtol=1e-12)

    def test_scalars_and_shapes(self, kind, keys):
        """A number in gives a number out, and arrays keep their shape."""
        s = made(kind, keys)
        k = np.array([[1.0, 2.0, 3.5], [4.0, 7.0, 300.0]])
        for method in (s, s.slope, s.efficiency, s.demand, s.work_demand):
            assert np.ndim(method(2.0)) == 0
            together = method(k)
            assert np.shape(together) == k.shape
            apart = [[float(method(float(x))) for x in row] for row in k]
            close = {"rtol": 1e-9, "atol": 1e-10} if kind == "custom" else {"rtol": 1e-12}
            np.testing.assert_allclose(together, apart, **close)

    def test_arrays_of_prices_and_weights(self, kind, keys):
        """Demand broadcasts prices against weights, and depends on their ratio alone."""
        s = made(kind, keys)
        prices, weights = np.array([0.01, 0.3, 5.0]), np.array([[0.5], [1.0], [40.0]])
        for method in (s.demand, s.work_demand):
            both = method(prices, weights)
            assert both.shape == (3, 3)
            np.testing.assert_allclose(both, method(prices / weights), rtol=1e-7)

    def test_efficiency(self, kind, keys):
        """Efficiency is s(k)/k."""
        s, k = made(kind, keys), np.array([1.0, 1.5, 2.0, 17.0, 400.0])
        np.testing.assert_allclose(s.efficiency(k), reference(kind, keys)(k) / k, rtol=1e-12)

    def test_slope_is_the_right_derivative(self, kind, keys):
        """Slope agrees with forward differences of the reference, also on kinks."""
        s, f = made(kind, keys), reference(kind, keys)
        for k in (1.0, 1.3, 2.0, 2.5, 4.0, 5.0, 8.0, 33.0, 200.0):
            if kind == "custom" and k < 1.0 + 1e-2:
                continue  # finite differences cannot step below one core
            h = 1e-6 * k
            forward = float(-3.0 * f(k) + 4.0 * f(k + h) - f(k + 2.0 * h)) / (2.0 * h)
            assert s.slope(k) == pytest.approx(forward, rel=2e-5, abs=1e-7), k

    def test_peak_is_the_smallest_fastest_width(self, kind, keys):
        """No width is faster than the peak, and every smaller one is slower."""
        s, f = made(kind, keys), reference(kind, keys)
        if math.isinf(s.peak):
            assert f(1e9) > f(1e3)
            return
        k = np.concatenate([np.linspace(1.0, 600.0, 2400), np.linspace(1.0, 12.0, 1101)])
        top = float(f(s.peak))
        assert f(k).max() <= top * (1.0 + 1e-11)
        before = k[k < s.peak * (1.0 - 1e-3)]
        assert before.size == 0 or f(before).max() < top

    def test_most_efficient_is_the_largest_best_width(self, kind, keys):
        """No width does more work per core, and every wider one does less."""
        s, f = made(kind, keys), reference(kind, keys)
        k = np.concatenate([np.linspace(1.0, 500.0, 2000), np.linspace(1.0, 12.0, 1101)])
        best = float(f(s.most_efficient)) / s.most_efficient
        per_core = f(k) / k
        assert per_core.max() <= best * (1.0 + 1e-11)
        beyond = per_core[k > s.most_efficient * (1.0 + 1e-3)]
        assert beyond.size == 0 or beyond.max() < best

    def test_most_efficient_lies_below_the_peak(self, kind, keys):
        """1 ≤ most efficient ≤ peak."""
        s = made(kind, keys)
        assert 1.0 <= s.most_efficient <= s.peak

    def test_concave_says_what_it_means(self, kind, keys):
        """`concave` is whether midpoints of chords lie below s, up to the peak."""
        s, f = made(kind, keys), reference(kind, keys)
        k = np.linspace(1.0, min(s.peak, 60.0), 60)
        a, b = np.meshgrid(k, k)
        holds = bool(np.all(f((a + b) / 2.0) >= (f(a) + f(b)) / 2.0 * (1.0 - 1e-10)))
        assert s.concave == holds

    def test_demand_at_extreme_prices(self, kind, keys):
        """Free cores are used up to the peak; at a prohibitive price nobody runs on more than pays."""
        s = made(kind, keys)
        assert s.demand(0.0) == pytest.approx(min(s.peak, 1e300), rel=1e-2) or math.isinf(s.demand(0.0))
        assert s.demand(1e200) == pytest.approx(s.most_efficient, rel=1e-6)
        assert 1.0 <= s.demand(1e-200) <= s.peak * (1.0 + 1e-9)

    def test_frozen_hashable_comparable_printable(self, kind, keys):
        """Equal parameters make equal values with equal hashes; nothing can be changed."""
        one, two = made(kind, keys), made(kind, keys)
        assert one == two
        assert hash(one) == hash(two)
        assert len({one, two}) == 1
        assert type(one).__name__ in repr(one)
        with pytest.raises(AttributeError):
            one.something = 1
        field = next(iter(keys))
        with pytest.raises(AttributeError):
            setattr(one, field, keys[field])

    def test_round_trip(self, kind, keys):
        """The document that a speedup writes is the document that it reads."""
        s = made(kind, keys)
        if kind == "custom":
            with pytest.raises(WorkloadError, match="cannot be written"):
                s.to_dict()
            return
        document = s.to_dict()
        assert document["kind"] == kind
        assert Speedup.of(document) == s
        assert Speedup.of(s) is s
        assert pickle.loads(pickle.dumps(s)) == s

    def test_cap(self, kind, keys):
        """Under a cap of n cores the best width up to n is chosen."""
        s, f = made(kind, keys), reference(kind, keys)
        for cap in (1.0, 2.0, 3.3, 7.0):
            limited = s.capped(cap)
            for price in (0.02, 0.2, 1.0):
                k = np.append(np.linspace(1.0, cap, 1001), np.arange(1.0, cap + 1e-9))
                bought = min(float(limited.demand(price)), cap)
                best = ((1.0 + price * k) / f(k)).min()
                assert (1.0 + price * bought) / f(bought) <= best * (1.0 + 1e-9)


@pytest.mark.parametrize(("kind", "keys"), all_examples("power", "amdahl", "usl"))
def test_derivatives(kind, keys):
    """The first three derivatives agree with central differences of the derivative below them."""
    s = made(kind, keys)
    for k in (1.3, 2.0, 5.0, 30.0):
        values = s.derivatives(k)
        assert values[0] == pytest.approx(float(reference(kind, keys)(k)), rel=1e-13)
        h = 1e-4 * k
        for order in (1, 2, 3):
            below = [float(s.derivatives(k + i * h)[order - 1]) for i in (-2, -1, 1, 2)]
            difference = (below[0] - 8.0 * below[1] + 8.0 * below[2] - below[3]) / (12.0 * h)
            scale = max(abs(float(v)) * k ** -(order - i) for i, v in enumerate(values[:order]))
            assert float(values[order]) == pytest.approx(difference, rel=1e-7, abs=1e-10 * scale)


@pytest.mark.parametrize("function", [gen.concave_function, gen.s_shaped, gen.falling])
def test_derivatives_of_callables(function):
    """The numeric derivatives of a smooth callable are good to a few digits, down to one core."""
    s = Custom(function, limit=512.0)
    for k in (1.0, 1.001, 2.0, 7.0, 100.0, 511.0):
        h = 1e-3 * k
        at = [float(function(k + i * h)) for i in range(-4, 5)]  # these functions exist below one, too
        first = sum(
            w * (at[4 + i] - at[4 - i]) for i, w in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
        )
        second = -205 / 72 * at[4] + sum(
            w * (at[4 + i] + at[4 - i]) for i, w in ((1, 8 / 5), (2, -1 / 5), (3, 8 / 315), (4, -1 / 560))
        )
        _, s1, s2, _ = s.derivatives(k)
        assert s1 == pytest.approx(first / h, rel=1e-7, abs=1e-9)
        assert s2 == pytest.approx(second / h**2, rel=1e-3, abs=1e-5)


class TestDemand:
    """Demand is defined as argmin over k ≥ 1 of (c + l·k)/s(k)."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_equals_brute_force(self, kind):
        """At every price the width bought costs no more than the best of a fine grid."""

        @settings(max_examples=20 if kind == "custom" else 40, deadline=None)
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

        @settings(max_examples=20, deadline=None)
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

        @settings(max_examples=20 if kind == "custom" else 40, deadline=None)
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

    @settings(max_examples=40, deadline=None)
    @given(gen.numbers(1e-3, 10.0), gen.numbers(0.05, 20.0), gen.numbers(0.05, 0.95))
    def test_closed_forms(self, price, weight, share):
        """Power and Amdahl demand are the closed forms of MODEL.md §1.1, threshold c·f(1) included."""
        power = weight * share / ((1.0 - share) * price)
        amdahl = math.sqrt(weight * (1.0 - share) / (share * price))
        assert Power(share).demand(price, weight) == pytest.approx(max(1.0, power), rel=1e-14)
        assert Amdahl(share).demand(price, weight) == pytest.approx(max(1.0, amdahl), rel=1e-14)

    @settings(max_examples=60, deadline=None)
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
        """With s(2) > 2 nobody ever buys one core."""
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

    @settings(max_examples=60, deadline=None)
    @given(gen.tables())
    def test_table_is_its_hull(self, keys):
        """Against the naive O(n²) mixture of widths; never below a measured point; concave; not falling."""
        s = Table(**{**keys, "hull": True})
        k = np.unique(np.concatenate([np.linspace(1.0, keys["cores"][-1] + 2.0, 200), keys["cores"]]))
        naive = np.array([gen.table(x, **{**keys, "hull": True}) for x in k.tolist()])
        np.testing.assert_allclose(s(k), naive, rtol=1e-11)
        assert s.concave
        assert np.all(s(np.array(keys["cores"])) >= np.array(keys["speedup"]) * (1.0 - 1e-11))

    @settings(max_examples=60, deadline=None)
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


class TestStack:
    """Many speedups evaluated together give what each gives alone."""

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(gen.speedups(*gen.FAST), min_size=1, max_size=8),
        gen.numbers(1e-3, 1e2),
        st.randoms(use_true_random=False),
    )
    def test_one_by_one(self, members, price, random):
        """Values, demand, derivatives and constants of a stack, entry by entry."""
        stack = Stack(members)
        weights = np.array([random.uniform(0.1, 10.0) for _ in members])
        k = np.array([random.uniform(1.0, 30.0) for _ in members])
        pairs = [
            (stack(k), [s(x) for s, x in zip(members, k, strict=True)]),
            (stack.peak, [s.peak for s in members]),
            (stack.most_efficient, [s.most_efficient for s in members]),
            (stack.concave, [s.concave for s in members]),
            (
                stack.demand(price, weights),
                [s.demand(price, c) for s, c in zip(members, weights, strict=True)],
            ),
            (
                stack.work_demand(price, weights),
                [s.work_demand(price, c) for s, c in zip(members, weights, strict=True)],
            ),
            *zip(
                stack.derivatives(k),
                np.array([s.derivatives(x) for s, x in zip(members, k, strict=True)]).T,
                strict=True,
            ),
        ]
        for together, apart in pairs:
            np.testing.assert_allclose(together, np.array(apart, dtype=float), rtol=1e-12)

    def test_callables_in_a_stack(self):
        """Families that cannot hold arrays keep their place among those that can."""
        members = [
            Power(0.5),
            Custom(gen.s_shaped, 512.0),
            Table([1, 2], [1, 1.5]),
            Custom(gen.falling, 512.0),
        ]
        stack = Stack(members)
        k = np.array([2.0, 3.0, 4.0, 5.0])
        np.testing.assert_allclose(stack(k), [s(x) for s, x in zip(members, k, strict=True)])
        weights = np.array([1.0, 2.0, 3.0, 4.0])
        np.testing.assert_allclose(
            stack.demand(0.1, weights), [s.demand(0.1, c) for s, c in zip(members, weights, strict=True)]
        )


BAD = [
    ({"kind": "power"}, "exponent"),
    ({"kind": "power", "exponent": 0}, "exponent"),
    ({"kind": "power", "exponent": 1}, "exponent"),
    ({"kind": "power", "exponent": -0.5}, "exponent"),
    ({"kind": "power", "exponent": math.nan}, "exponent"),
    ({"kind": "power", "exponent": "0.5"}, "exponent"),
    ({"kind": "power", "exponent": True}, "exponent"),
    ({"kind": "power", "exponent": [0.5]}, "exponent"),
    ({"kind": "power", "exponent": 0.5, "cores": 3}, "cores"),
    ({"kind": "amdahl", "sequential": 0}, "sequential"),
    ({"kind": "amdahl", "sequential": math.inf}, "sequential"),
    ({"kind": "usl", "contention": 1.0, "coherency": 0}, "contention"),
    ({"kind": "usl", "contention": 0.1, "coherency": -1}, "coherency"),
    ({"kind": "usl", "contention": 0, "coherency": 0}, "rooftop"),
    ({"kind": "rooftop", "cores": 0.5}, "cores"),
    ({"kind": "rooftop", "cores": math.inf}, "cores"),
    ({"kind": "linear_power", "cores": 0, "exponent": 0.5}, "cores"),
    ({"kind": "table", "cores": [1, 2]}, "speedup"),
    ({"kind": "table", "cores": [], "speedup": []}, "cores"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1]}, "speedup has 1"),
    ({"kind": "table", "cores": [1, 2, 2], "speedup": [1, 2, 3]}, r"cores\[2\]"),
    ({"kind": "table", "cores": [1, 3, 2], "speedup": [1, 2, 3]}, r"cores\[2\].*2 follows 3"),
    ({"kind": "table", "cores": [2, 3], "speedup": [1, 2]}, r"cores\[0\].*start at 1"),
    ({"kind": "table", "cores": [1, 2], "speedup": [2, 3]}, r"speedup\[0\].*divide by 2"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, math.nan]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": [1, math.nan], "speedup": [1, 2]}, r"cores\[1\]"),
    ({"kind": "table", "cores": [1, math.inf], "speedup": [1, 2]}, r"cores\[1\]"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, -2]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, 0]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, "2"]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": 1, "speedup": 1}, "cores"),
    ({"kind": "table", "cores": [1, 4, 5], "speedup": [1, 3.7, 2.1]}, "falls from 3.7 at k=4 to 2.1 at k=5"),
    ({"kind": "table", "cores": [1, 4, 5], "speedup": [1, 3.7, 2.1]}, "hull = true"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, 2], "hull": 1}, "hull"),
    ({"kind": "custom", "function": "nowhere.py:s"}, "nowhere.py"),
    ({"kind": "custom", "function": "not a reference"}, "not a reference"),
    ({"kind": "custom", "function": 5}, "5"),
]


class TestErrors:
    """Bad parameters are named, with their place."""

    @pytest.mark.parametrize(("document", "words"), BAD)
    def test_messages(self, document, words):
        """The message names the key and says what is wrong with it."""
        with pytest.raises(ParameterError, match=words):
            Speedup.of(document)

    def test_unknown_kind(self):
        """A misspelt kind gets a suggestion."""
        with pytest.raises(UnknownKindError, match="did you mean 'amdahl'"):
            Speedup.of({"kind": "amdal", "sequential": 0.1})

    @pytest.mark.parametrize("value", [None, 3, "power", [], {}, {"kind": 3}, {"kind": None}])
    def test_not_a_speedup(self, value):
        """What is neither a table with a kind nor a function is an error of ours."""
        with pytest.raises(MalleableError):
            Speedup.of(value)

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (lambda k: 2.0 * k, r"s\(1\) = 2"),
            (lambda k: k * math.nan, "finite"),
            (lambda k: 2.0 - k, "positive"),
            (lambda _: "fast", "raised"),
            (lambda k: k / 0, "raised"),
            (lambda: 1.0, "raised"),
        ],
    )
    def test_bad_callables(self, function, words):
        """A function with s(1) ≠ 1, with NaN or negative values, or that raises, is refused."""
        with pytest.raises(ParameterError, match=words):
            Speedup.of(function)

    def test_falling_table_with_hull(self):
        """The same table is fine once hull is asked for."""
        s = Table([1, 4, 5], [1, 3.7, 2.1], hull=True)
        assert s(5.0) == 3.7
        assert s.peak == 4.0

    def test_numpy_parameters(self):
        """NumPy arrays and scalars are as good as lists and numbers."""
        assert Table(np.array([1, 2]), np.array([1.0, 1.5])) == Table([1.0, 2.0], (1, 1.5))
        assert Power(np.float64(0.5)) == Power(0.5)
        assert Rooftop(np.int64(4)) == Rooftop(4.0)
        assert LinearPower(2, 0.5) != LinearPower(3, 0.5)


def test_callable_from_a_file(tmp_path):
    """`file.py:name` in a document is read, used, and written back."""
    file = tmp_path / "mine.py"
    file.write_text("def s(k):\n    return k ** 0.5\n")
    s = Speedup.of({"kind": "custom", "function": f"{file}:s"})
    assert s(4.0) == 2.0
    assert Speedup.of(s.to_dict()) == s
