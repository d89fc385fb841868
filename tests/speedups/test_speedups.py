"""Every speedup family keeps the contract `Speedup`, and its numbers agree with naive ones.

The conformance tests list the catalog: a family without an example fails.
"""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import allocate
from malleable.contracts import Speedup
from malleable.errors import WorkloadError
from malleable.model import Workload
from malleable.speedups.base.stack import Stack
from malleable.speedups.custom import Custom
from malleable.speedups.power import Power
from malleable.speedups.table import Table
from support import strategies as gen
from support.examples import examples
from support.speedup_examples import EXAMPLES, KINDS, all_examples, made


def reference(kind, parameters):
    return np.vectorize(lambda k: gen.REFERENCES[kind](float(k), **parameters), otypes=[float])


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
        """Free cores are used up to the peak; at a prohibitive price no job runs on more than pays."""
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


class TestStack:
    """Many speedups evaluated together give what each gives alone."""

    @settings(max_examples=examples(16))
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


def test_a_curve_is_its_content(tmp_path):
    """A curve that is read again from an edited file is another one, and widths follow it."""
    file = tmp_path / "curve.py"

    def widths(exponent):
        file.write_text(f"def speed(k):\n    return k ** {exponent}\n", "utf-8")
        rows = [
            {"name": name, "arrivals": {"kind": "poisson", "rate": 1.0}, "speedup": speedup}
            | {"size": {"kind": "exponential", "rate": 1.0}}
            for name, speedup in (
                ("own", {"kind": "custom", "function": f"{file}:speed"}),
                ("power", {"kind": "power", "exponent": 0.5}),
            )
        ]
        workload = Workload.from_dict({"name": "edited", "classes": rows})
        jobs = [{"id": name, "class": name, "remaining": 1.0} for name in ("own", "power")]
        return workload, allocate(workload, jobs, 16).cores

    (before, first), (same, again), (after, then) = widths(0.3), widths(0.3), widths(0.8)
    assert before == same
    assert hash(before) == hash(same)
    assert before != after
    assert list(first) == list(again)
    assert then[0] > 8.0 > first[0]
