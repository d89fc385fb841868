"""The optimal policy against brute force, closed forms, proven optima and value iteration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.errors import ParameterError, UnsupportedError
from malleable.model import Workload, paper_workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import Process, evaluate
from malleable.theory.optimal_policy import optimum
from malleable.theory.relaxed import bound
from support.chains import AMDAHL, BUMPY, POWER, SHORT_AND_LONG, exponential, paper_exponential, workload

# --- the optimum -----------------------------------------------------------------------------------------


def test_brute_force_on_a_tiny_chain():
    """n = 2, at most 3 jobs, two classes: the best of all 8000 policies that never rest costs the same."""
    made = workload((1.0, exponential(0.5), POWER, 1.0), (0.8, exponential(1.0), AMDAHL, 1.6))
    states = [z for z in itertools.product(range(4), repeat=2) if sum(z) <= 3]
    index = {z: j for j, z in enumerate(states)}
    speeds = [[0.0, 1.0, float(s(2.0))] for s in made.speedups]
    rates, ends = made.rates, 1.0 / made.mean_sizes

    def row(z, cores):
        out = np.zeros(len(states))
        for i, unit in enumerate(((1, 0), (0, 1))):
            if sum(z) < 3:
                out[index[z[0] + unit[0], z[1] + unit[1]]] += rates[i]
            if z[i]:
                total = float(cores[i]) if z[i] >= 2 else speeds[i][cores[i]]
                out[index[z[0] - unit[0], z[1] - unit[1]]] += ends[i] * total
        out[index[z]] -= out.sum()
        return out

    choices = [
        [row(z, a) for a in itertools.product(range(3), repeat=2)
         if 0 < sum(a) <= 2 and all(z[i] or not a[i] for i in range(2))]
        for z in states[1:]
    ]  # fmt: skip
    choices.insert(0, [row((0, 0), (0, 0))])
    generators = np.array(list(itertools.product(*choices)))
    assert len(generators) == 2**6 * 5**3
    systems = generators.transpose(0, 2, 1).copy()
    systems[:, 0, :] = 1.0
    right = np.zeros((len(states), 1))
    right[0] = 1.0
    laws = np.linalg.solve(systems, np.broadcast_to(right, (len(systems), *right.shape)))[:, :, 0]
    costs = laws @ (np.array(states) @ made.holding_costs) / made.total_rate
    found = optimum(made, 2, 3, lost="free")
    assert found.cost == pytest.approx(costs.min(), rel=1e-12)
    assert found.low <= costs.min() * (1 + 1e-12)
    assert costs.min() < np.median(costs) * 0.99


def test_value_iteration_on_the_uniformised_chain():
    """The textbook algorithm, step by step on a uniformised chain, ends at the same cost and allocations."""
    made = paper_exponential(2).at(3, 0.6)
    limit, n = 8, 3
    states = [z for z in itertools.product(range(limit + 1), repeat=2) if sum(z) <= limit]
    index = {z: j for j, z in enumerate(states)}
    ends, s = 1.0 / made.mean_sizes, made.speedups

    def total_speed(i, jobs, cores):
        used = min(jobs, cores)
        low, more = divmod(cores, used) if used else (0, 0)
        return (used - more) * float(s[i](low)) + more * float(s[i](low + 1)) if used else 0.0

    pace = made.total_rate + n * ends.max()
    actions = []
    for z in states:
        rows = []
        for a in range(n + 1):
            row = np.zeros(len(states))
            for i, cores in enumerate((a, n - a)):
                up = tuple(z[j] + (j == i) for j in range(2)) if sum(z) < limit else z
                row[index[up]] += made.rates[i] / pace
                if z[i]:
                    down = tuple(z[j] - (j == i) for j in range(2))
                    row[index[down]] += ends[i] * total_speed(i, z[i], cores) / pace
            row[index[z]] += 1.0 - row.sum()
            rows.append(row)
        actions.append(rows)
    step, costs = np.array(actions), np.array(states) @ made.holding_costs / pace
    values = np.zeros(len(states))
    for _ in range(5000):
        new = costs + (step @ values).min(axis=1)
        change, values = new - values, new - new[0]
        if np.ptp(change) < 1e-13:
            break
    found = optimum(made, n, limit, lost="free")
    assert found.cost * made.total_rate == pytest.approx(change[0] * pace, rel=1e-10)
    # Values agree up to the empty state's, which is 0.
    order = found.lattice.index(np.array(states))
    assert found.values[order] == pytest.approx(values, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("lost", ["free", "charged"])
@pytest.mark.parametrize(
    ("made", "cores", "limit"),
    [
        (paper_exponential(2).at(4, 0.7), 4, 24),
        (paper_exponential(3).at(6, 0.5), 6, 16),
        (SHORT_AND_LONG.at(4, 0.6), 4, 24),
        (paper_workload(5, 0.5), 5, 11),
    ],
    ids=["two", "three", "short-and-long", "paper"],
)
def test_no_rule_beats_the_optimum(made, cores, limit, lost):
    """Every class rule costs at least the optimum on the same truncated chain, and whole cores cost more."""
    real = optimum(made, cores, limit, widths="real", lost=lost)
    whole = optimum(made, cores, limit, lost=lost)
    assert real.low <= real.cost <= real.high * (1 + 1e-12)
    assert real.high - real.low <= 1e-8 * real.high
    assert real.cost <= whole.cost * (1 + 1e-9)
    for name in ("wham", "equi", "greedy", "greedy:weight=cmu", "greedy-star"):
        speeds = class_speeds(Policy.of(name), made, cores)
        assert evaluate(made, cores, speeds, limit, lost=lost).cost >= real.low * (1 - 1e-9), name
    if not tied(made):
        integer = class_speeds(Policy.of("wham-integer"), made, cores)
        assert evaluate(made, cores, integer, limit, lost=lost).cost >= whole.low * (1 - 1e-9)
    if lost == "charged":
        assert bound(made, cores).bound_capped <= real.cost


def tied(made):
    """Whether two classes are alike in all that WHAM looks at."""
    return len({(str(c.speedup), c.holding_cost) for c in made.classes}) < len(made.classes)


@pytest.mark.parametrize("max_rounds", [1, 2, 3])
def test_the_bracket_holds_before_it_is_closed(max_rounds):
    """After any number of rounds the optimum lies in the bracket, and the policy costs at most `high`."""
    made = paper_exponential(2).at(6, 0.8)
    final = optimum(made, 6, 40, widths="real")
    early = optimum(made, 6, 40, widths="real", max_rounds=max_rounds)
    assert early.low <= final.cost * (1 + 1e-10)
    assert final.cost <= early.cost * (1 + 1e-10) <= early.high * (1 + 2e-10)
    assert ("not converged" in early.warning) == (early.high - early.low > 1e-8 * early.high)
    assert final.warning == "" or "truncated" in final.warning


@pytest.mark.parametrize("speedup", [POWER, AMDAHL, {"kind": "power", "exponent": 0.9}])
def test_equi_is_optimal_for_one_exponential_class(speedup):
    """Berg et al. (2018): with one class and exponential sizes equal shares are optimal; closed form."""
    made, n, limit = workload((1.0, exponential(1.0), speedup, 1.0)).at(4, 0.6), 4, 60
    found = optimum(made, n, limit, widths="real", lost="free")
    z = np.arange(1, limit + 1)
    s = made.speedups[0]
    deaths = z * np.asarray(s(n / z))
    law = np.concatenate([[1.0], np.cumprod(made.rates[0] / deaths)])
    law /= law.sum()
    assert found.cost == pytest.approx(law[1:] @ z / made.rates[0], rel=1e-9)
    assert found.cores[1:, 0] == pytest.approx(n, rel=1e-9)
    assert found.speeds[1:, 0] == pytest.approx(deaths, rel=1e-9)


INELASTIC, ELASTIC = {"kind": "rooftop", "cores": 1}, {"kind": "rooftop", "cores": 4}


def priority(first, cores=4):
    """Strict priority on class counts: inelastic jobs use a core each, elastic ones all that is left."""

    def speeds(counts):
        inelastic, elastic = counts.T
        if first == "inelastic":
            a = np.minimum(inelastic, cores)
            b = np.where(elastic > 0, cores - a, 0.0)
        else:
            b = np.where(elastic > 0, float(cores), 0.0)
            a = np.minimum(inelastic, cores - b)
        return np.column_stack([a, b]) / np.maximum(counts, 1.0)

    return speeds


@pytest.mark.parametrize("widths", ["whole", "real"])
@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_inelastic_first_is_optimal_when_inelastic_jobs_are_no_larger(ratio, widths):
    """Berg et al. (2020): κ = 1 and κ = n, exponential sizes, μ_I ≥ μ_E: Inelastic-First is optimal."""
    made = workload(
        (1.0, exponential(1.0 / ratio), INELASTIC, 1.0), (1.0, exponential(1.0), ELASTIC, 1.0)
    ).at(4, 0.7)
    found = optimum(made, 4, 60, widths=widths)
    known = evaluate(made, 4, priority("inelastic"), 60)
    assert found.cost == pytest.approx(known.cost, rel=1e-7)
    states = found.lattice.states
    near = (found.lattice.totals <= 30) & (states[:, 1] > 0)
    if ratio > 1.0:
        assert found.cores[near, 0] == pytest.approx(np.minimum(states[near, 0], 4.0), abs=1e-9)
    other = evaluate(made, 4, priority("elastic"), 60)
    assert other.cost > known.cost * 1.02


def test_inelastic_first_is_not_optimal_when_inelastic_jobs_are_large():
    """With μ_I far below μ_E the optimum is another policy, and Elastic-First beats Inelastic-First."""
    made = workload((1.0, exponential(10.0), INELASTIC, 1.0), (10.0, exponential(1.0), ELASTIC, 1.0)).at(
        4, 0.8
    )
    found = optimum(made, 4, 110)
    first = evaluate(made, 4, priority("inelastic"), 110)
    second = evaluate(made, 4, priority("elastic"), 110)
    assert found.low < second.cost < first.cost
    assert found.cost < 0.95 * first.cost


def preemptive_priority(rates, means):
    """E[N_i] of the M/M/1 queue with preemptive-resume priorities, first class first (textbook form)."""
    loads, before, jobs = np.asarray(rates) * means, 0.0, []
    residual = np.cumsum(np.asarray(rates) * np.asarray(means) ** 2)
    for i, load in enumerate(loads):
        after = before + load
        time = means[i] / (1 - before) + residual[i] / ((1 - before) * (1 - after))
        jobs.append(rates[i] * time)
        before = after
    return np.array(jobs)


@pytest.mark.parametrize("limit", [1, 3, 30])
def test_c_mu_on_one_core(limit):
    """One core: the cμ rule is optimal, and the charge makes its cost exact at any limit."""
    made = workload(
        (0.5, exponential(0.4), POWER, 1.0),
        (0.25, exponential(1.0), POWER, 5.0),
        (0.3, exponential(0.8), POWER, 1.0),
    )
    order = np.argsort(-made.holding_costs / made.mean_sizes)
    assert order.tolist() == [1, 0, 2]
    jobs = preemptive_priority(made.rates[order], made.mean_sizes[order])
    known = made.holding_costs[order] @ jobs / made.total_rate
    found = optimum(made, 1, limit)
    assert found.cost == pytest.approx(known, rel=1e-10)
    if limit == 30:
        assert found.jobs[order] == pytest.approx(jobs, rel=2e-3)
        assert found.cores_at(1, 2, 0).tolist() == [0.0, 1.0, 0.0]


def test_phases_without_information_change_nothing():
    """A hyperexponential law whose phases are alike is exponential, and seeing the phase is worth nothing."""
    alike = {"kind": "hyperexponential", "probabilities": [0.3, 0.7], "rates": [2.0, 2.0]}
    plain, split = (
        workload((1.0, exponential(0.25), POWER, 1.0), (1.0, size, AMDAHL, 2.0)).at(3, 0.5)
        for size in (exponential(0.5), alike)
    )
    first, second = (optimum(w, 3, 14, widths="real") for w in (plain, split))
    assert second.cost == pytest.approx(first.cost, rel=1e-9)
    assert second.jobs == pytest.approx(first.jobs, rel=1e-8)
    assert second.sees_phases
    assert not first.sees_phases


def test_seeing_phases_is_worth_something():
    """On the paper's workload the optimum that sees phases is a lower bound, and clearly below WHAM."""
    made = paper_workload(4, 0.6)
    found = optimum(made, 4, 16, widths="real")
    wham = evaluate(made, 4, class_speeds(Policy.of("wham"), made, 4), 16)
    assert found.sees_phases
    assert bound(made, 4).bound_capped < found.cost < 0.98 * wham.cost


# --- truncation ------------------------------------------------------------------------------------------


def test_lost_jobs_must_be_charged():
    """Where losing is free the optimum fills the system to be spared arrivals; charged, it is right early."""
    made = SHORT_AND_LONG.at(2, 0.9)
    true = optimum(made, 2, 110, widths="real").cost
    free = [optimum(made, 2, limit, widths="real", lost="free") for limit in (20, 40, 80)]
    charged = [optimum(made, 2, limit, widths="real") for limit in (20, 40, 80)]
    assert [one.cost for one in free] == sorted(one.cost for one in free)
    assert free[-1].cost < 0.99 * true
    assert free[0].mass_at_limit > 10 * charged[0].mass_at_limit
    errors = [abs(one.cost / true - 1) for one in charged]
    assert errors[0] < 5e-4
    assert errors[1] < 1e-5
    assert errors[2] < 1e-8


def test_the_limit_is_found():
    """Without a limit one is chosen at which next to nothing is lost, and a higher one changes nothing."""
    made = paper_exponential(2).at(4, 0.7)
    found = optimum(made, 4, widths="real")
    assert found.mass_at_limit < 1e-6
    assert found.warning == ""
    assert optimum(made, 4, 2 * found.limit, widths="real").cost == pytest.approx(found.cost, rel=3e-6)
    few = optimum(made, 4, max_states=100)
    assert len(few.cores) <= 100
    assert "enlarge limit" in few.warning


def test_free_optima_bound_the_unlimited_system():
    """With free losses every limit gives a lower bound on the optimum of the unlimited system."""
    made = paper_exponential(2).at(3, 0.6)
    true = optimum(made, 3, 60).cost
    assert all(optimum(made, 3, limit, lost="free").low <= true for limit in (2, 5, 12, 25))


# --- errors ----------------------------------------------------------------------------------------------


def test_bad_questions_are_refused():
    """No Markov chain, no whole cores, no concave speedup, no finite charge: an error of ours."""
    made = paper_exponential(2).at(4, 0.5)
    with pytest.raises(ParameterError, match="whole"):
        optimum(made, 3.5, 5)
    with pytest.raises(ParameterError, match="widths"):
        optimum(made, 4, 5, widths="wide")
    with pytest.raises(ParameterError, match="truncate"):
        optimum(made, 4, 0)
    with pytest.raises(ParameterError, match="no limit is high enough"):
        optimum(made.scaled(3.0), 4)
    with pytest.raises(ParameterError, match="free"):
        optimum(made.scaled(3.0), 4, 6)
    with pytest.raises(UnsupportedError, match="states"):
        Process(made, 4, 600)
    with pytest.raises(UnsupportedError, match="not concave"):
        optimum(workload((1.0, exponential(1.0), BUMPY, 1.0)), 4, 5, widths="real")
    with pytest.raises(UnsupportedError, match="no phases"):
        optimum(workload((1.0, {"kind": "deterministic", "value": 1.0}, POWER, 1.0)), 4, 5)
    renewal = {"kind": "renewal", "interval": {"kind": "erlang", "stages": 2, "mean": 1.0}}
    row = {"arrivals": renewal, "size": exponential(1.0), "speedup": POWER}
    with pytest.raises(UnsupportedError, match="renewal"):
        optimum(Workload.from_dict({"name": "r", "classes": [row]}), 4, 5)
    with pytest.raises(ParameterError, match="no state"):
        optimum(made, 4, 5).cores_at(3, 3)
