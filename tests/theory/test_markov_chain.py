"""The exact chain against closed forms, dense solves and the numbers of MODEL.md §6."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from malleable.errors import ParameterError, UnsupportedError
from malleable.theory.markov_chain import Lattice, solve
from malleable.theory.queues import mphc

EXP5 = np.array([1.0]), np.array([[-5.0]])
EXP3 = np.array([1.0]), np.array([[-3.0]])
H2 = np.array([0.5, 0.5]), np.diag([-1.0, -9.0])
E2 = np.array([1.0, 0.0]), np.array([[-2.0, 2.0], [0.0, -2.0]])

PAPER_RATES = np.array([1.0, 2.0, 5 / 3])
PAPER_PHASES = [EXP5, H2, EXP3]
HOLDING_COSTS = np.array([1.0, 2.0, 1.0])


def paper_speeds(k):
    """The three speedups of the paper, linear below one core."""
    wide = np.maximum(k, 1.0)
    s = np.stack([wide[:, 0] ** 0.3, wide[:, 1] ** 0.5, 1 / (0.2 + 0.8 / wide[:, 2])], axis=1)
    return np.where(k < 1.0, k, s)


def equal(counts, n):
    return n / np.maximum(counts.sum(axis=1, keepdims=True), 1.0) * np.ones((1, 3))


def cleared(counts, n, demand):
    """Cores per job at the price that clears the market, by bisection; one core shared out when N ≥ n."""
    low, high = np.full(len(counts), -30.0), np.full(len(counts), 10.0)
    for _ in range(100):
        middle = (low + high) / 2
        scarce = (counts * demand(np.exp(middle)[:, None])).sum(axis=1) > n
        low, high = np.where(scarce, middle, low), np.where(scarce, high, middle)
    crowded = counts.sum(axis=1, keepdims=True) >= n
    return np.where(crowded, equal(counts, n), demand(np.exp(high)[:, None]))


def wham(counts, n):
    return cleared(counts, n, lambda l: np.maximum(1.0, np.hstack([3 / 7 / l, 2.0 / l, np.sqrt(4.0 / l)])))


def greedy(counts, n):
    def demand(v):
        amdahl = (np.sqrt(0.8 / v) - 0.8) / 0.2
        return np.maximum(1.0, np.hstack([(0.3 / v) ** (1 / 0.7), (0.5 / v) ** 2, amdahl]))

    return cleared(counts, n, demand)


def paper(rule, n, limit, load=0.25):
    rates = PAPER_RATES * 15 * n / 112 * load / 0.25
    return solve(rates, PAPER_PHASES, lambda counts: paper_speeds(rule(counts, n)), limit)


def dense(rates, phases, speeds, limit):
    """The truncated chain state by state, solved as one dense system: E[N_i] and P(N = j)."""
    owner = [(i, u) for i, (p, _) in enumerate(phases) for u in range(len(p))]
    states = [z for z in itertools.product(range(limit + 1), repeat=len(owner)) if sum(z) <= limit]
    index = {z: j for j, z in enumerate(states)}
    generator = np.zeros((len(states), len(states)))

    def move(z, changes, rate):
        after = list(z)
        for j, d in changes:
            after[j] += d
        generator[index[z], index[tuple(after)]] += rate

    for z in states:
        counts = [sum(x for x, (k, _) in zip(z, owner, strict=True) if k == i) for i in range(len(phases))]
        speed = speeds(np.array([counts], dtype=float))[0]
        for j, (i, u) in enumerate(owner):
            p, Q = phases[i]
            if sum(z) < limit:
                move(z, [(j, 1)], rates[i] * p[u])
            if z[j]:
                move(z, [(j, -1)], -z[j] * speed[i] * Q[u].sum())
                for v in range(len(p)):
                    if v != u:
                        move(z, [(j, -1), (j - u + v, 1)], z[j] * speed[i] * Q[u, v])
    generator -= np.diag(generator.sum(axis=1))
    system = np.vstack([generator.T, np.ones(len(states))])
    law = np.linalg.lstsq(system, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    classes = np.array([[(k == i) for i in range(len(phases))] for k, _ in owner], dtype=float)
    levels = np.bincount([sum(z) for z in states], law)
    return law @ np.array(states) @ classes, levels


@pytest.mark.parametrize(("parts", "limit"), [(1, 5), (2, 7), (4, 6), (70, 1)])
def test_the_index_counts_the_states_before(parts, limit):
    """Every count vector within the limit occurs once, level by level, and the index finds it."""
    lattice = Lattice(parts, limit)
    assert (lattice.index(lattice.states) == np.arange(len(lattice.states))).all()
    assert len(np.unique(lattice.states, axis=0)) == len(lattice.states)
    assert (np.diff(lattice.totals) >= 0).all()
    assert (lattice.totals[lattice.level(limit)] == limit).all()


@pytest.mark.parametrize(
    ("rule", "n", "limit", "cost"),
    [
        (wham, 16, 26, 0.2400331),
        (greedy, 16, 26, 0.2414230),
        (equal, 16, 26, 0.2440912),
        pytest.param(wham, 128, 42, 0.1695505, marks=pytest.mark.slow),
        pytest.param(wham, 128, 52, 0.1695505, marks=pytest.mark.slow),
        pytest.param(greedy, 128, 50, 0.1711420, marks=pytest.mark.slow),
        pytest.param(equal, 128, 50, 0.1845563, marks=pytest.mark.slow),
    ],
)
def test_exact_costs_of_the_paper(rule, n, limit, cost):
    """WHAM, GREEDY and EQUI cost what MODEL.md §6 says, to all seven digits."""
    chain = paper(rule, n, limit)
    assert chain.cost(HOLDING_COSTS) == pytest.approx(cost, abs=5.5e-8)
    assert chain.residual < 1e-12
    assert chain.truncation < 1e-8


@pytest.mark.parametrize("load", [0.1, 0.6, 2.0])
def test_three_classes_equal_a_dense_solve(load):
    """A tiny truncated chain, overloaded or not, equals the same chain solved densely."""
    rates = PAPER_RATES * 3 * load
    chain = solve(rates, PAPER_PHASES, lambda counts: paper_speeds(wham(counts, 4)), 6)
    jobs, levels = dense(rates, PAPER_PHASES, lambda counts: paper_speeds(wham(counts, 4)), 6)
    assert chain.jobs == pytest.approx(jobs, rel=1e-9)
    assert chain.levels == pytest.approx(levels, rel=1e-8, abs=1e-13)


def test_changes_of_phase_equal_a_dense_solve():
    """Erlang and looping phases, with a strict priority that gives a class nothing, equal a dense solve."""
    loops = np.array([0.3, 0.7]), np.array([[-2.0, 0.5], [1.5, -4.0]])

    def priority(counts):
        first = counts[:, 0] > 0
        return np.stack([2.0 / np.maximum(counts[:, 0], 1), np.where(first, 0.0, 1.0)], axis=1)

    rates = np.array([0.8, 0.5])
    chain = solve(rates, [E2, loops], priority, 9)
    jobs, levels = dense(rates, [E2, loops], priority, 9)
    assert chain.jobs == pytest.approx(jobs, rel=1e-9)
    assert chain.levels == pytest.approx(levels, rel=1e-8)


def test_processor_sharing_closed_form():
    """One exponential class sharing one core is M/M/1: P(N = j) = (1 − ρ)ρ^j."""
    chain = solve([3.5], [EXP5], lambda counts: 1.0 / np.maximum(counts, 1.0), 120)
    assert chain.levels == pytest.approx(0.3 * 0.7 ** np.arange(121), rel=1e-9)
    assert chain.cost([2.0]) == pytest.approx(2.0 / (5.0 - 3.5))
    assert chain.exceeds(9) == pytest.approx(0.7**10)


@pytest.mark.parametrize("phases", [H2, E2], ids=["H2", "E2"])
def test_processor_sharing_is_insensitive(phases):
    """EQUI with linear speedup is M/G/1-PS: only the mean size matters."""
    p, Q = phases
    rate = 0.6 / (p @ np.linalg.solve(-Q, np.ones(2)))
    chain = solve([rate], [phases], lambda counts: 1.0 / np.maximum(counts, 1.0), 60)
    assert chain.levels == pytest.approx(0.4 * 0.6 ** np.arange(61), rel=1e-9)


def test_infinite_servers_are_independent_poisson():
    """With a speed of 1 for everyone the counts are Poisson with means λ_i E[X_i]."""
    rates = np.array([2.0, 3.0, 4.0])
    chain = solve(rates, PAPER_PHASES, np.ones_like, 30)
    assert chain.jobs == pytest.approx(rates * [1 / 5, 5 / 9, 1 / 3], rel=1e-10)
    assert chain.response_times == pytest.approx([1 / 5, 5 / 9, 1 / 3], rel=1e-10)


def test_few_exponential_jobs_on_many_cores_are_the_queue():
    """Time-shared servers of one exponential class have the jobs present of M/M/c."""
    chain = solve([12.0], [EXP5], lambda counts: np.minimum(1.0, 4 / np.maximum(counts, 1.0)), 120)
    assert chain.jobs[0] == pytest.approx(mphc(12.0, *EXP5, 4).jobs, rel=1e-10)


def test_littles_law_counts_work():
    """Work conservation: EQUI with linear speedup keeps exactly ρn cores busy."""
    rates, n, limit = np.array([1.0, 2.0, 5 / 3]), 4, 40
    counts = Lattice(1, limit).states.astype(float)
    chain = solve(
        rates,
        PAPER_PHASES,
        lambda c: np.minimum(1.0, n / np.maximum(c.sum(1, keepdims=True), 1)) + 0 * c,
        limit,
    )
    busy = chain.levels @ np.minimum(counts[:, 0], n)
    assert busy == pytest.approx(28 / 15, rel=1e-8)


def test_a_full_chain_says_so():
    """Where the truncation loses arrivals, the result says how many and what to do."""
    short = paper(wham, 16, 6)
    assert short.truncation > 1e-4
    assert "enlarge limit" in short.warning
    assert short.limit == 6
    assert paper(wham, 16, 24).warning == ""


def test_a_run_cut_short_says_so():
    """Without rounds the residual is reported, not hidden."""
    chain = solve(PAPER_RATES * 4, PAPER_PHASES, lambda c: paper_speeds(wham(c, 8)), 12, max_rounds=0)
    assert "not converged" in chain.warning


def test_tails_far_below_rounding_do_not_break_it():
    """A limit so high that its probability underflows is harmless."""
    chain = solve([1.0], [EXP5], np.ones_like, 400)
    assert chain.jobs[0] == pytest.approx(0.2, rel=1e-12)
    assert chain.truncation == 0.0


def test_a_class_that_never_arrives_is_absent():
    """A rate of zero is allowed: no jobs, no response time, and the others as if alone."""
    chain = solve([3.5, 0.0], [EXP5, H2], lambda c: 1.0 / np.maximum(c.sum(1, keepdims=True), 1) + 0 * c, 60)
    assert chain.jobs == pytest.approx([0.7 / 0.3, 0.0], rel=1e-6)
    assert np.isnan(chain.response_times[1])


def test_bad_questions_are_refused():
    """Rules that serve no job, wrong shapes and state spaces out of reach get an error of ours."""
    with pytest.raises(ParameterError, match=r"class counts \[1\]"):
        solve([1.0], [EXP5], np.zeros_like, 5)
    with pytest.raises(ParameterError, match="speeds must be shaped"):
        solve([1.0], [EXP5], lambda c: c[:, 0], 5)
    with pytest.raises(ParameterError, match="arrival rates"):
        solve([0.0], [EXP5], np.ones_like, 5)
    with pytest.raises(UnsupportedError, match="lower the limit"):
        solve(PAPER_RATES, PAPER_PHASES, np.ones_like, 200)


@pytest.mark.slow
def test_a_heavily_loaded_chain_converges():
    """Load .9, where N > n is common and mixing is slow, still balances to the last digits."""
    chain = paper(wham, 16, 50, load=0.9)
    assert chain.residual < 1e-12
    assert "enlarge limit" in chain.warning
