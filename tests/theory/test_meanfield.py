"""The fluid equation, its fixed point and its trajectories agree with the paper and with closed forms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malleable import api
from malleable.contracts import Policy
from malleable.errors import InfeasibleError, ParameterError, UnstableError, UnsupportedError
from malleable.model import JobClass, Workload, paper_workload
from malleable.theory.attractor import trajectory
from malleable.theory.fluid import Fluid
from malleable.theory.market import WhittleBuyers
from malleable.theory.meanfield import mean_field
from malleable.theory.refined_mean_field import _regime
from malleable.theory.relaxed import bound
from support.examples import examples
from support.fluid_cases import situations

BASE = 112 / 15
RULES = ["wham", "greedy", "equi"]


def fluid_of(policy, workload, cores):
    return Fluid(workload, Policy.of(policy), cores)


def one_class(speedup, rate=1.0, size=None, cost=1.0, name="only"):
    size = size or {"kind": "exponential", "rate": 1.0}
    return JobClass(name, {"kind": "poisson", "rate": rate}, size, speedup, cost)


def single(speedup, **options):
    return Workload("single", (one_class(speedup, **options),))


TABLE = {"kind": "table", "cores": [1, 2, 4, 8], "speedup": [1.0, 1.8, 3.0, 4.0]}


@pytest.mark.parametrize(
    ("policy", "ratio"),
    [
        ("wham", 1.0),
        ("equi", 1.118885),
        ("greedy", 1.011113),
        ("greedy:weight=mu", 1.0904),
        ("greedy:weight=c", 1.0260),
        ("greedy:weight=cmu", 1.0069),
    ],
)
def test_limits_of_the_paper_workload(policy, ratio):
    """The limit costs of the class rules relative to V* are the known ones."""
    cost = mean_field(paper_workload(BASE), BASE, Policy.of(policy), starts=0).cost
    assert cost / 0.1578484983857 == pytest.approx(ratio, abs=5e-5 if ratio != 1.0 else 1e-12)


def test_paper_eigenvalues():
    """The linearised equation of WHAM decays at the known rates, listed fastest first."""
    result = mean_field(paper_workload(BASE), BASE, Policy.of("wham"), starts=0)
    np.testing.assert_allclose(np.real(result.eigenvalues), [-43.476, -9.400, -8.118, -2.897], atol=6e-4)
    assert np.all(np.imag(result.eigenvalues) == 0.0)
    assert result.stable


def test_paper_fixed_point():
    """At WHAM's fixed point the price and the widths are those of the relaxed problem."""
    result = mean_field(paper_workload(BASE), BASE, Policy.of("wham"), starts=0)
    assert result.price == pytest.approx(0.0792672226826, rel=1e-10)
    widths = [c.cores for c in result.classes]
    np.testing.assert_allclose(widths, [5.4066663883, 25.2311098120, 7.1036764864], rtol=1e-9)
    assert sum(c.jobs * c.cores for c in result.classes) == pytest.approx(BASE)


@pytest.mark.parametrize("policy", RULES)
@settings(max_examples=examples(6))
@given(situation=situations())
def test_nothing_moves_at_the_fixed_point(policy, situation):
    """F(z*) = 0 for mixed speedups and phase-type sizes, and the widths in use are the market's own."""
    fluid = fluid_of(policy, *situation)
    point = fluid.fixed_point()
    assert np.abs(fluid.drift(point.state)).max() <= 1e-8 * fluid.arrivals.max()
    np.testing.assert_allclose(point.market.quantities, point.widths, rtol=1e-7)
    np.testing.assert_allclose(fluid.by_class(point.state), point.jobs)


@settings(max_examples=examples(6))
@given(situation=situations())
def test_wham_attains_the_bound(situation):
    """WHAM's cost at the fixed point is the lower bound V*, and no other rule is below it."""
    best = bound(*situation).bound
    assert fluid_of("wham", *situation).fixed_point().cost == pytest.approx(best, rel=1e-9)
    for other in ("greedy", "equi"):
        assert fluid_of(other, *situation).fixed_point().cost >= best * (1.0 - 1e-9)


@pytest.mark.parametrize("policy", RULES)
@settings(max_examples=examples(6))
@given(situation=situations(), data=st.data())
def test_jacobian_is_the_derivative(policy, situation, data):
    """The analytic Jacobian agrees with finite differences of F, at random states and in overload."""
    fluid = fluid_of(policy, *situation)
    weights = data.draw(st.lists(st.floats(0.05, 1), min_size=len(fluid.owner), max_size=len(fluid.owner)))
    fill = data.draw(st.floats(0.05, 2.0))
    state = np.array(weights)
    state *= fill / float(fluid.overload(state))
    assume(abs(fill - 1.0) > 0.01)
    assume_smooth(fluid, state)
    step = 1e-5 * state
    columns = [(fluid.drift(state + d) - fluid.drift(state - d)) / (2 * d.sum()) for d in np.diag(step)]
    A = fluid.jacobian(state)
    np.testing.assert_allclose(A, np.transpose(columns), atol=1e-5 * np.abs(fluid.generator).max(), rtol=1e-4)


@pytest.mark.parametrize("policy", RULES)
@settings(max_examples=examples(6))
@given(situation=situations(), data=st.data())
def test_curvature_is_the_second_derivative(policy, situation, data):
    """D²F:W agrees with finite differences of the Jacobian, for W a sum of products v vᵀ."""
    fluid = fluid_of(policy, *situation)
    point = fluid.fixed_point()
    assume_smooth(fluid, point.state)
    W, expected = 0.0, 0.0
    for _ in range(2):
        signs = data.draw(st.lists(st.floats(-1, 1), min_size=len(fluid.owner), max_size=len(fluid.owner)))
        v = np.array(signs) * point.state
        up, down = (fluid.jacobian(point.state + h * v) for h in (1e-4, -1e-4))
        W, expected = W + np.outer(v, v), expected + (up - down) @ v / 2e-4
    scale = np.abs(fluid.jacobian(point.state) @ point.state).max()
    np.testing.assert_allclose(fluid.curvature(point.state, W), expected, rtol=1e-4, atol=1e-5 * scale)


def assume_smooth(fluid, state):
    """Skip states on a kink of the demand, where there is no derivative."""
    market = fluid.market(fluid.by_class(state))
    if np.isfinite(market.price) and market.price > 0.0:
        here, low, high = (_regime(fluid, market.price * x) for x in (1.0, 1 - 3e-3, 1 + 3e-3))
        assume(np.array_equal(here, low))
        assume(np.array_equal(here, high))


def test_equi_single_class_in_closed_form():
    """EQUI with one exponential power-law class: k = (n/load)^{1/(1−p)}, Z = n/k, one eigenvalue known."""
    p, rate, n = 0.4, 3.0, 20.0
    result = mean_field(single({"kind": "power", "exponent": p}, rate=rate), n, Policy.of("equi"), starts=4)
    k = (n / rate) ** (1 / (1 - p))
    assert result.classes[0].cores == pytest.approx(k)
    assert result.classes[0].jobs == pytest.approx(n / k)
    assert result.cost == pytest.approx(n / k / rate)
    # ż = λ − z^{1−p} n^p, so A = −(1−p) s(k).
    assert result.eigenvalues[0].real == pytest.approx(-(1 - p) * k**p)
    assert result.attractor.converged == 4


@pytest.mark.parametrize("policy", [*RULES, "greedy:weight=cmu"])
@pytest.mark.parametrize("load", [0.8, pytest.param(0.25, marks=pytest.mark.slow)])
def test_all_starts_converge_on_the_paper_workload(policy, load):
    """From the empty, the full and random systems every trajectory ends at the fixed point."""
    seen = []
    report = mean_field(
        paper_workload(32, load), 32, Policy.of(policy), starts=4, progress=lambda *x: seen.append(x)
    )
    assert report.attractor.starts == report.attractor.converged == 4
    assert report.attractor.worst_distance < 1e-4
    assert seen == [(i, 4) for i in range(1, 5)]


def test_study_is_reproducible():
    """The same seed gives the same study."""
    first, second = (mean_field(paper_workload(8), 8, Policy.of("equi"), starts=4, seed=3) for _ in "ab")
    assert first == second


@pytest.mark.slow
def test_a_start_that_lsoda_cannot_leave():
    """From this empty system LSODA finds no first step; another method does, and nothing is printed."""
    sizes = [
        {"kind": "hyperexponential", "probabilities": [0.15085113531135752, 0.8491488646886425],
         "rates": [0.14409511350080764, 0.8111188675103036]},
        {"kind": "hyperexponential", "probabilities": [0.620155344677751, 0.379844655322249],
         "rates": [2.798825936556199, 1.7142786598583373]},
        {"kind": "erlang", "stages": 2, "rate": 2.5313505137548806},
        {"kind": "erlang", "stages": 3, "rate": 12.307536178627746},
    ]  # fmt: skip
    speedups = [
        {"kind": "power", "exponent": 0.7256485714613825},
        {"kind": "usl", "contention": 0.13351097219537889, "coherency": 0.009310332706760228},
        {"kind": "usl", "contention": 0.03171168793319044, "coherency": 0.003160548715929667},
        {"kind": "power", "exponent": 0.9308161191836787},
    ]
    rates = [16.78990598591927, 15.186581275878144, 16.272676094304494, 6.615821187393949]
    costs = [0.8167009301187538, 2.188524998062561, 2.101490318912933, 1.6810824543162592]
    rows = [
        {"name": f"c{i}", "arrivals": {"kind": "poisson", "rate": rates[i]}, "size": sizes[i],
         "speedup": speedups[i], "holding_cost": costs[i]}
        for i in range(4)
    ]  # fmt: skip
    workload = Workload.from_dict({"name": "hard", "classes": rows})
    found = mean_field(workload, 64, Policy.of("wham"), starts=1, seed=14).attractor
    assert (found.starts, found.converged) == (1, 1)


def test_trajectory_from_empty_obeys_the_equation():
    """A trajectory starts where it is told, its slope is F, and it ends at the fixed point."""
    fluid = fluid_of("wham", paper_workload(BASE), BASE)
    times = np.linspace(0.0, 8.0, 801)
    path = trajectory(fluid, np.zeros(4), times)
    assert path.state.shape == (801, 4)
    assert path.jobs.shape == (801, 3)
    assert not path.left_domain
    assert np.all(path.state[0] == 0.0)
    slope = (path.state[302] - path.state[300]) / 0.02
    np.testing.assert_allclose(slope, fluid.drift(path.state[301]), atol=1e-3 * fluid.arrivals.max())
    np.testing.assert_allclose(path.state[-1], fluid.fixed_point().state, rtol=1e-5)


def test_trajectory_through_overload():
    """A start with more jobs than cores is followed, flagged, and comes back."""
    fluid = fluid_of("wham", paper_workload(BASE), BASE)
    path = trajectory(fluid, np.full(4, BASE), [0.0, 0.1, 60.0])
    assert path.left_domain
    np.testing.assert_allclose(path.state[-1], fluid.fixed_point().state, rtol=1e-4)


def test_the_drift_is_continuous_where_jobs_reach_the_cores():
    """The time-sharing extension meets the paper's equation at Σz = n."""
    for policy in (*RULES, "greedy:weight=mu"):
        fluid = fluid_of(policy, paper_workload(BASE), BASE)
        state = np.array([1.0, 3.0, 2.0, BASE - 6.0])
        below, above = (fluid.drift(state * (1 + x)) for x in (-1e-9, 1e-9))
        np.testing.assert_allclose(below, above, rtol=1e-6)


def test_following_the_market_changes_nothing():
    """Finding the price from the last one gives the cores of a search from scratch."""
    rng = np.random.default_rng(1)
    for policy in (*RULES, "greedy:weight=mu"):
        fluid = fluid_of(policy, paper_workload(BASE), BASE)
        market = None
        for _ in range(50):
            jobs = rng.dirichlet(np.ones(3)) * BASE * rng.random() * 1.2
            market = fluid.market(jobs, market)
            np.testing.assert_allclose(market.quantities, fluid.market(jobs).quantities, rtol=1e-8, atol=1e-9)


def test_tables_sit_on_a_chord():
    """A measured speedup: the fixed point mixes two widths, costs the bound, and is stable and attracting."""
    workload = Workload("tables", tuple(one_class(TABLE, rate=r, name=f"t{r}") for r in (1.0, 2.5)))
    result = mean_field(workload, 6.0, Policy.of("wham"), starts=6)
    assert result.cost == pytest.approx(bound(workload, 6.0).bound)
    assert all(1.0 < c.cores < 8.0 and c.cores not in {2.0, 4.0} for c in result.classes)
    fluid, z = result.fluid, np.array(result.state)
    assert np.abs(fluid.drift(z)).max() < 1e-8
    columns = [(fluid.drift(z + d) - fluid.drift(z - d)) / 2e-5 for d in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(fluid.jacobian(z), np.transpose(columns), rtol=1e-4, atol=1e-6)
    assert result.stable
    assert result.attractor.converged == 6


def test_a_speedup_without_formulas_at_its_corner():
    """A Python function with corners is stuck at one of them like a table, not given a wild slope."""
    corner = single(lambda k: np.minimum(k, 4 + (k - 4) * 0.001))
    smooth = one_class({"kind": "power", "exponent": 0.5}, name="smooth")
    workload = Workload("mixed", (*corner.classes, smooth))
    fluid = fluid_of("wham", workload, 16.0)
    point = fluid.fixed_point()
    assert point.widths[0] == pytest.approx(4.0)
    columns = [(fluid.drift(point.state + d) - fluid.drift(point.state - d)) / 2e-5 for d in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(fluid.jacobian(point.state), np.transpose(columns), rtol=1e-3, atol=1e-5)


def test_whole_cores_have_the_integer_bound_as_their_limit():
    """With demand on whole cores the fixed point mixes neighbouring widths and costs V_int*."""

    class Whole(type(Policy.of("wham"))):
        def buyers(self, workload):
            return WhittleBuyers(workload.speedups, workload.holding_costs, integer=True)

    point = Fluid(paper_workload(BASE), Whole(), BASE).fixed_point()
    assert point.cost == pytest.approx(0.1578894899, abs=1e-9)


def test_jobs_that_cannot_use_all_cores():
    """With rooftops and cores to spare the price is 0 and the classes are independent M/G/∞ systems."""
    workload = single(
        {"kind": "rooftop", "cores": 4.0}, rate=2.0, size={"kind": "erlang", "stages": 2, "mean": 1}
    )
    for policy in RULES:
        result = mean_field(workload, 10.0, Policy.of(policy), starts=5)
        assert result.price == 0.0
        assert result.classes[0].jobs == pytest.approx(0.5)
        np.testing.assert_allclose(np.real(result.eigenvalues), [-8.0, -8.0], rtol=1e-6)
        assert result.attractor.converged == 5


def test_document_has_the_promised_keys():
    """`to_dict` is valid JSON with the keys of the public surface."""
    document = json.loads(
        json.dumps(api.mean_field("paper", 16, 0.25, "greedy:weight=cmu", starts=2).to_dict())
    )
    assert document["policy"] == "greedy:weight=cmu"
    assert document["load"] == pytest.approx(0.25)
    assert [set(row) for row in document["fixed_point"]] == [{"name", "jobs", "cores"}] * 3
    assert {"coefficient", "cost", "applies", "reason"} <= set(document["refined"])
    assert {"starts", "converged", "worst_distance"} <= set(document["attractor"])
    assert {"cost", "stable", "eigenvalues", "price", "cores"} <= set(document)
    assert document["eigenvalues"] == sorted(document["eigenvalues"])


def test_complex_eigenvalues_are_pairs():
    """Cyclic phases decay in oscillations; such eigenvalues are written as [re, im]."""
    cyclic = {"kind": "erlang", "stages": 3, "mean": 1.0}
    result = mean_field(
        single({"kind": "amdahl", "sequential": 0.3}, size=cyclic), 4.0, Policy.of("wham"), starts=0
    )
    pairs = [v for v in result.to_dict()["eigenvalues"] if isinstance(v, list)]
    assert len(pairs) == 2
    assert pairs[0] == [pairs[1][0], -pairs[1][1]]


def test_greedy_may_starve_a_class():
    """Weights so unequal that a class is priced out: an error that names it, not a wrong fixed point."""
    power = {"kind": "power", "exponent": 0.8}
    workload = Workload(
        "starved", (one_class(power, name="rich", cost=50.0), one_class(power, name="poor", cost=0.1))
    )
    assert mean_field(workload, 4.0, Policy.of("wham"), starts=0).stable
    with pytest.raises(UnstableError, match="'poor' without cores"):
        mean_field(workload, 4.0, Policy.of("greedy:weight=c"))


def test_starved_states_are_passed_as_greedy_does():
    """Where GREEDY serves the valuable class alone, the fluid gives the others nothing."""
    fluid = fluid_of("greedy:weight=mu", paper_workload(BASE), BASE)
    market = fluid.market(np.array([BASE * 1.5, 1.0, 1.0]))
    np.testing.assert_allclose(market.quantities, [1 / 1.5, 0.0, 0.0], rtol=1e-9)


def test_superlinear_tables_have_no_equi_point():
    """EQUI at a load that only wide jobs could carry has no fixed point; WHAM has one."""
    table = {"kind": "table", "cores": [1, 2], "speedup": [1.0, 3.0]}
    with pytest.raises(InfeasibleError, match="the load is"):
        mean_field(single(table, rate=2.4), 2.0, Policy.of("equi"))
    assert mean_field(single(table, rate=2.4), 2.0, Policy.of("wham"), starts=3).attractor.converged == 3


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        ({"kind": "lognormal", "mean": 1.0, "sigma": 1.0}, "lognormal"),
        ({"kind": "deterministic", "value": 1.0}, "det"),
    ],
)
def test_sizes_without_phases_are_refused(size, kind):
    """Sizes that are not of phase type have no fluid equation; the error names class and law."""
    with pytest.raises(UnsupportedError, match=f"class 'only': {kind}"):
        mean_field(single({"kind": "power", "exponent": 0.5}, size=size), 4.0, Policy.of("wham"))


def test_bad_input_is_refused():
    """Too much load, bad counts of starts, seeds, starts of trajectories and times are named."""
    wham = Policy.of("wham")
    with pytest.raises(InfeasibleError, match="load"):
        mean_field(paper_workload(), 1.0, wham)
    for options in ({"starts": -1}, {"starts": 2.5}, {"starts": True}, {"seed": -1}):
        with pytest.raises(ParameterError, match="whole number"):
            mean_field(paper_workload(8), 8, wham, **options)
    result = mean_field(paper_workload(8), 8, wham, starts=0)
    for start in ([1.0], [-1.0, 0, 0, 0], [np.nan, 0, 0, 0]):
        with pytest.raises(ParameterError, match="4 counts"):
            result.trajectory(start, [0.0, 1.0])
    for times in ([], [1.0, 0.0], [0.0, np.inf], 3.0):
        with pytest.raises(ParameterError, match="times"):
            result.trajectory(np.ones(4), times)
    assert result.trajectory(np.ones(4), [2.0]).state.tolist() == [[1.0] * 4]
