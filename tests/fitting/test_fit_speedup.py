"""Fitted speedups: known curves are found again, real ones fit, and none breaks the contract."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import Workload, fit_speedup
from malleable.contracts import Speedup
from malleable.errors import MalleableError, MeasurementError, ParameterError
from malleable.fitting import Measurements, choosing
from malleable.fitting.curves import concave
from support.examples import examples
from support.speedup_contract import assert_contract

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FILES = [*sorted(DATA.glob("a100/*.csv")), *sorted(DATA.glob("pollux/*.csv"))]
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
KNOWN = {
    "power": {"exponent": 0.62},
    "amdahl": {"sequential": 0.08},
    "usl": {"contention": 0.04, "coherency": 0.0008},
    "rooftop": {"cores": 7.0},
    "linear_power": {"cores": 5.0, "exponent": 0.4},
}
"""True curves; the peak of the USL lies at 34.6 cores, beyond the widths."""
CONTAINS = {"power": {"linear_power"}, "amdahl": {"usl"}, "rooftop": {"linear_power"}}
"""Families of which each is a special case."""


def runs(kind: str, noise: float, repeat: int, widths=WIDTHS, seed: int = 0) -> dict[int, list[float]]:
    """Run times of a job of 100 s with a known speedup."""
    truth, rng = Speedup.of({"kind": kind, **KNOWN[kind]}), np.random.default_rng(seed)
    return {k: (100.0 / truth(k) * np.exp(noise * rng.standard_normal(repeat))).tolist() for k in widths}


@pytest.mark.parametrize("kind", KNOWN)
def test_known_curves_are_found_again(kind):
    """From 8 runs per width with 3 % noise: parameters within 8 %, the curve within 3 %."""
    fit = fit_speedup(times=runs(kind, 0.03, 8), family=kind, replications=0)
    truth = Speedup.of({"kind": kind, **KNOWN[kind]})
    k = np.array(WIDTHS, dtype=float)
    assert np.abs(np.log(fit.speedup(k) / truth(k))).max() < 0.03
    for key, value in KNOWN[kind].items():
        assert getattr(fit.speedup, key) == pytest.approx(value, rel=0.08 if key != "coherency" else 0.3)


@pytest.mark.parametrize("kind", KNOWN)
def test_exact_curves_are_found_exactly(kind):
    """Without noise the parameters come back to the digits that are kept, whatever the unit of time."""
    fit = fit_speedup(times=runs(kind, 0.0, 1), family=kind, replications=0)
    for key, value in KNOWN[kind].items():
        assert getattr(fit.speedup, key) == pytest.approx(value, rel=2e-3)
    assert fit.to_dict()["one_core"] == pytest.approx(100.0, rel=2e-3)


@pytest.mark.parametrize(
    ("kind", "samples"),
    [("power", 3), *(pytest.param(one, 9, marks=pytest.mark.slow) for one in ("power", "amdahl", "rooftop"))],
)
def test_the_right_family_is_chosen(kind, samples):
    """In two of three samples with 2 % noise the true family is chosen, else one that contains it."""
    found = (fit_speedup(times=runs(kind, 0.02, 5, seed=seed), replications=0) for seed in range(samples))
    chosen = [fit.family for fit in found]
    assert chosen.count(kind) >= 2 * samples // 3
    assert set(chosen) <= {kind, *CONTAINS[kind]}


@pytest.mark.parametrize("kind", ["power", "amdahl"])
def test_without_one_core(kind):
    """A formula extrapolates to one core: from widths 4 and up the curve is within 10 % of the truth."""
    fit = fit_speedup(times=runs(kind, 0.01, 5, widths=(4, 6, 8, 12, 16, 24, 32)), family=kind)
    truth = Speedup.of({"kind": kind, **KNOWN[kind]})
    assert fit.speedup(32.0) == pytest.approx(truth(32.0), rel=0.1)
    assert any("one core was not measured" in note for note in fit.notes)
    assert_contract(fit.speedup, 32.0)


def test_hull_without_one_core_starts_from_the_origin():
    """Where one core was not measured, the hull is linear up to the most efficient width."""
    fit = fit_speedup(throughput={4: 8.0, 8: 14.0, 16: 13.0}, family="hull")
    assert fit.speedup.to_dict() == {
        "kind": "table", "cores": [1.0, 4.0, 8.0], "speedup": [1.0, 4.0, 7.0], "hull": True,
    }  # fmt: skip


def test_hull_is_the_least_concave_majorant():
    """Against brute force: at every width the best mixture of a narrower and a wider point."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        rates = {k: float(rng.uniform(0.5, 1.5) * k**0.6) for k in (1, 2, 3, 5, 8, 13)}
        fit = fit_speedup(throughput=rates, family="hull", replications=0)
        for x in np.linspace(1.0, 13.0, 49):
            # A point counts at its width and, as a job may leave cores idle, at every wider one.
            points = [(a, r) for k, r in rates.items() for a in {k, 13} if a >= k]
            best = max(
                r1 if b == a else r1 + (r2 - r1) * (x - a) / (b - a)
                for a, r1 in points
                for b, r2 in points
                if a <= x <= b and (a < b or a == x)
            )
            assert fit.speedup(x) == pytest.approx(best / rates[1], rel=1e-5)


def test_concave_is_the_nearest_concave_curve():
    """Against a solver of quadratic programs: the least sum of squared relative errors."""
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    rng = np.random.default_rng(6)
    k = np.array([1.0, 2.0, 4.0, 6.0, 8.0])
    rates = k**0.5 * np.exp(0.1 * rng.standard_normal(5))
    points = Measurements.of(throughput=list(zip(k, rates, strict=True))).points
    target = np.exp(points.log_rates)
    r = cvxpy.Variable(5)
    slopes = cvxpy.multiply(cvxpy.diff(r), 1.0 / np.diff(k))
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(cvxpy.multiply(r, 1.0 / target) - 1.0)),
        [slopes >= 0.0, slopes[1:] <= slopes[:-1]],
    )
    problem.solve()
    curve = concave(points)
    assert np.exp(curve.log_rates(k)) == pytest.approx(r.value, rel=1e-4)


@pytest.mark.parametrize("family", choosing.NAMES)
@given(
    rates=st.dictionaries(st.integers(1, 64), st.floats(1e-3, 1e3), min_size=2, max_size=6),
    repeat=st.integers(1, 2),
)
@settings(max_examples=examples(6))
def test_no_measurement_breaks_the_contract(family, rates, repeat):
    """Whatever was measured, the speedup is concave, does not fall, and the line says the same."""
    fit = fit_speedup(throughput={k: [r] * repeat for k, r in rates.items()}, family=family, replications=0)
    assert_contract(fit.speedup, float(max(rates)))
    text = (
        '[[classes]]\nname = "a"\narrivals = { kind = "poisson", rate = 1.0 }\n'
        f'size = {{ kind = "exponential", mean = 1.0 }}\n{fit.line}\n'
    )
    import tomllib

    assert Workload.from_dict({"name": "w", **tomllib.loads(text)}).classes[0].speedup == fit.speedup


@pytest.mark.skipif(not FILES, reason=f"measured curves are not at {DATA}")
@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=pytest.mark.slow if i % 3 else ()) for i, file in enumerate(FILES)],
    ids=[f"{file.parent.name}/{file.stem}" for file in FILES],
)
def test_every_measured_file_fits(file):
    """Each file of real measurements, and its first row in every family, is in the contract."""
    first = fit_speedup(file, replications=4)
    assert_contract(first.speedup, first.measurements.widths[-1])
    assert all(point.band[0] <= point.band[1] for point in first.points if point.band)
    check_families(file, first.measurements.rows[0])


def check_families(file, row):
    """Every family fits a row, within the contract."""
    for family in choosing.NAMES:
        fit = fit_speedup(file, family, row=row, replications=0)
        assert_contract(fit.speedup, fit.measurements.widths[-1])
        assert all(math.isfinite(point.residual) for point in fit.points)


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason=f"measured curves are not at {DATA}")
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_measured_row_has_a_best_family(file):
    """The automatic choice finds a family for each row, and all families keep the contract."""
    for row in fit_speedup(file, "hull").measurements.rows:
        check_families(file, row)
        fit = fit_speedup(file, row=row, replications=0)
        assert fit.family in choosing.NAMES
        assert_contract(fit.speedup, fit.measurements.widths[-1])


def test_falling_measurements_are_raised():
    """A job leaves cores idle: where it is slower than on fewer cores, s is flat, and the fit says so."""
    fit = fit_speedup(throughput={1: 1.0, 2: 1.8, 4: 3.0, 8: 2.0}, family="hull")
    assert fit.speedup(8.0) == fit.speedup(4.0) == 3.0
    assert any("slower than on fewer cores at 8" in note for note in fit.notes)


def test_better_than_linear():
    """A super-linear point stays: the hull goes through it, and the fit says so."""
    fit = fit_speedup(times={1: 10.0, 2: 4.0, 4: 3.0}, family="hull")
    assert fit.speedup(2.0) == 2.5
    assert any("better than linear on 2 cores" in note for note in fit.notes)


def test_always_slower():
    """A job that is only slowed down by more cores has a speedup of 1 at any width."""
    fit = fit_speedup(times={1: 1.0, 2: 2.0, 4: 4.0})
    assert_contract(fit.speedup, 4.0)
    assert fit.speedup(4.0) == pytest.approx(1.0, abs=1e-3)


def test_two_widths_are_joined_by_their_hull():
    """Two widths cannot be cross-validated; the hull claims nothing beyond them."""
    fit = fit_speedup("1@3600,4@1200")
    assert (fit.family, fit.criterion) == ("hull", choosing.TOO_FEW)
    assert fit.speedup(100.0) == 3.0


def test_scores_are_errors_at_widths_left_out():
    """The score of the power law, computed by hand: regression of log rate on log k."""
    rates = {1: 1.0, 2: 1.9, 4: 3.1, 8: 5.2, 16: 8.0}
    points = Measurements.of(throughput=rates).points
    x, y = np.log(list(rates)), np.log(list(rates.values()))
    errors = []
    for i in range(1, 5):
        keep = np.arange(5) != i
        slope, level = np.polyfit(x[keep], y[keep], 1)
        errors.append(level + slope * x[i] - y[i])
    assert choosing.score("power", points).error == pytest.approx(
        np.sqrt(np.mean(np.square(errors))), rel=1e-3
    )


def coverage(repeat: int, widths: tuple[int, ...], samples: int) -> float:
    """How often a band of 95 % at 8 cores holds the true speedup."""
    truth, held = float(Speedup.of({"kind": "amdahl", **KNOWN["amdahl"]})(8.0)), 0
    for seed in range(samples):
        times = runs("amdahl", 0.03, repeat, widths, seed)
        fit = fit_speedup(times=times, family="amdahl", replications=60)
        low, high = fit.band(np.array([8.0]))
        held += bool(low[0] <= truth <= high[0])
    return held / samples


def test_bands_cover_the_truth():
    """Of 10 bands at the 95 % level from three runs per width, at least 8 hold the true speedup."""
    assert coverage(3, (1, 2, 4, 8, 16), 10) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repeat", "widths"), [(1, (1, 2, 3, 4, 6, 8, 16)), *((n, (1, 2, 4, 8, 16)) for n in (3, 5, 8))]
)
def test_bands_cover_the_truth_as_often_as_they_say(repeat, widths):
    """Of 100 bands at the 95 % level, from single runs and from repeated ones, 88 to 100 hold the truth."""
    assert coverage(repeat, widths, 100) >= 0.88


def test_the_same_seed_gives_the_same_bands():
    """Bands are drawn from a seed; another one gives other bands."""
    times = runs("power", 0.05, 3, (1, 2, 4, 8))
    one, same, other = (
        fit_speedup(times=times, seed=seed, replications=40).points[-1].band for seed in (1, 1, 2)
    )
    assert one == same != other


def test_one_disturbed_run_does_not_count():
    """Of five runs per width one took ten times as long: the fit is the same."""
    clean = runs("amdahl", 0.0, 5)
    spoilt = {k: [*times[:4], times[4] * 10.0] for k, times in clean.items()}
    assert (
        fit_speedup(times=spoilt, family="amdahl").speedup
        == fit_speedup(times=clean, family="amdahl").speedup
    )


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"times": {4: 3.0}}, "only one width was measured, 4 cores"),
        ({"times": {}}, "there are no measurements"),
        ({"times": {1: 0.0, 2: 1.0}}, "time on 1 cores must be above 0, got 0"),
        ({"times": {1: math.nan, 2: 1.0}}, "must be above 0, got nan"),
        ({"throughput": {1: math.inf, 2: 1.0}}, "must be above 0, got inf"),
        ({"times": {0.5: 1.0, 2: 1.0}}, "cores must be at least 1, got 0.5"),
        ({"times": {"a": 1.0}}, "cannot read measurements"),
        ({"times": {1: 1.0}, "throughput": {1: 1.0}}, "either times or throughput"),
    ],
)
def test_bad_measurements(given_, words):
    """Each mistake has one sentence and a hint."""
    with pytest.raises(MeasurementError, match=words) as caught:
        fit_speedup(**given_)
    assert caught.value.hint


def test_bad_questions():
    """A family that does not exist, and measurements given twice."""
    with pytest.raises(ParameterError, match="no family 'amdal'"):
        fit_speedup("1@2,2@1", "amdal")
    with pytest.raises(MalleableError, match="given twice"):
        fit_speedup("1@2,2@1", times={1: 1.0})
