"""From numbers to verdicts: what the paper's experiments have in common."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pytest

from malleable.paper.contracts import failed
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.policies import POLICIES, label
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate, t_quantile
from support.paper_numbers import comparison

RESULT = {"batches": 40, "control_variates": {"number": 6}, "confidence": 0.95}


def around(mean, error):
    """A 95 % interval with that standard error."""
    return Estimate(mean, mean - 1.96 * error, mean + 1.96 * error)


def test_widened():
    """A half-width grows as Student's quantiles do; without degrees of freedom it is infinite."""
    wide = ev.widened(Estimate(1.0, 0.9, 1.1), RESULT, 0.999)
    assert wide.half_width == pytest.approx(0.1 * t_quantile(33, 0.999) / t_quantile(33, 0.95))
    assert ev.widened(Estimate(1.0, 0.9, 1.1), {**RESULT, "batches": 7}, 0.999).half_width == inf


def test_power_of_exact_values():
    """y = 3 n^(−0.7) is recognised; what may be zero is left out; two points do not make a slope."""
    n = [1, 10, 100, 1000]
    exponent, factor = ev.power(n, [3.0 * x**-0.7 for x in n])
    assert (exponent.mean, factor) == (pytest.approx(-0.7), pytest.approx(3.0))
    assert exponent.half_width < 1e-6
    values = [around(3.0 * x**-0.7, 0.01 * x**-0.7) for x in n]
    assert ev.power([*n, 10**4], [*values, around(0.1, 1.0)])[0].mean == pytest.approx(-0.7)
    assert isnan(ev.power(n[:2], [1.0, 2.0])[0].mean)


def test_limits_are_covered():
    """Over 300 noisy curves a + b/n + c/n² the 95 % interval of the limit holds a 92 to 98 % of the time."""
    rng = np.random.default_rng(1)
    n = 2.0 ** np.arange(6, 13)
    hits = 0
    for _ in range(300):
        y = 0.16 + 1.4 / n + 20.0 / n**2 + rng.normal(0.0, 1e-4, len(n))
        found, points = ev.limit(n, [around(v, 1e-4) for v in y], 64, confidence=0.95)
        hits += found.low <= 0.16 <= found.high
    assert points == 7
    # The interval is also widened by chance where residuals happen to be large, hence up to 99 %.
    assert 276 <= hits <= 297


def test_limits_need_points():
    """Two points give none; three do without the last term."""
    values = [around(1.0 + 1.0 / x, 1e-3) for x in (1, 2, 4)]
    assert ev.limit([1, 2], values[:2], 0)[0].half_width == inf
    assert ev.limit([1, 2, 4], values, 0)[0].mean == pytest.approx(1.0)
    assert ev.limit([1, 2, 4], values, 2)[1] == 2


def test_tends_to():
    """Inside a short interval holds, outside fails, inside a long one is left open."""

    def word(found, precision=0.02):
        return ev.tends_to("it", found, 1.0, precision, "so").word

    assert word(Estimate(1.001, 0.99, 1.012)) == "holds"
    assert word(Estimate(1.1, 1.05, 1.15)) == "fails"
    assert word(Estimate(1.1, 0.9, 1.3)) == "undecided"
    assert word(Estimate()) == "undecided"


def test_agreement():
    """One value among many far outside its interval is enough; the level allows for their number."""

    def case(off, half=0.01):
        return ev.Case("x", Estimate(1.0 + off, 1.0 + off - half, 1.0 + off + half), RESULT, 1.0)

    assert ev.agreement("it", [case(0.0)] * 20).holds
    assert ev.agreement("it", [case(0.02)]).holds is False
    # 0.018 is 3.7 standard errors: too much for one value, not for the worst of a hundred.
    assert ev.agreement("it", [case(0.018)]).holds is False
    assert ev.agreement("it", [case(0.018), *[case(0.0)] * 99]).holds
    assert ev.agreement("it", [case(0.1), *[case(0.0)] * 99]).holds is False
    assert ev.agreement("it", [case(0.02)], tolerance=0.03).holds
    assert ev.agreement("it", []).holds is None
    assert ev.agreement("it", [ev.Case("x", Estimate(1.0), RESULT, 1.0)]).holds is None


def test_failed():
    """A cell without a value for a reason of the model is recognised."""
    assert failed(None)
    assert failed({"error": "infeasible"})
    assert not failed({"results": {}})
    assert isnan(read_interval({"mean": None, "low": None, "high": None}).mean)


def test_compared():
    """Costs and differences are those of the cell, shares those of the first policy's cost."""
    cell = comparison({"wham": 0.2, "equi": 0.25}, half=0.01, unstable=("equi",))
    found = Compared(cell)
    assert found.cost("equi") == Estimate(0.25, 0.24, 0.26)
    assert found.apart("equi").mean == pytest.approx(0.05)
    assert found.share("equi").mean == pytest.approx(0.25)
    assert found.share("equi").half_width == pytest.approx(0.5 * 0.01 / 0.2)
    assert (found.stable("wham"), found.stable("equi")) == (True, False)
    lost = Compared({"error": "no plan"})
    assert (lost.result("equi"), lost.stable("equi"), lost.results) == (None, False, {})
    assert all(one.half_width == inf for one in (lost.cost("equi"), lost.apart("equi"), lost.share("equi")))


def test_interval_columns():
    """A column for the means and one for each end; an end that is not known is NaN."""
    columns = interval_columns("cost", [Estimate(2.0, 1.0, 3.0), Estimate()], "from", "to")
    assert list(columns) == ["cost", "from", "to"]
    assert [column[0] for column in columns.values()] == [2.0, 1.0, 3.0]
    assert all(isnan(column[1]) for column in columns.values())
    assert interval_columns("cost", []) == {"cost": (), "low": (), "high": ()}


def test_policies_look_different():
    """No two policies have one name or one colour, and other options change neither."""
    names = [one.name for one in POLICIES.values()]
    colours = [one.colour for one in POLICIES.values() if one.colour is not None]
    assert len(set(names)) == len(names)
    assert len(set(colours)) == len(colours)
    assert label("fw-cam:beta=0.8") == POLICIES["fw-cam"]
    assert label("greedy:weight=mu") != POLICIES["greedy"]
