"""One of several widths for each job: against the enumeration of all choices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.engine import legal_widths as width_choice
from support.examples import examples


@st.composite
def choices(draw):
    """Up to five jobs with rising whole widths (no cores first), any costs, and up to eight cores."""
    n, jobs = draw(st.integers(0, 8)), draw(st.integers(1, 5))
    counts, widths, costs = np.empty(jobs, np.int64), np.zeros((jobs, 5)), np.zeros((jobs, 5))
    for j in range(jobs):
        own = sorted({0, *draw(st.lists(st.integers(1, 8), max_size=4))})
        counts[j] = len(own)
        widths[j, : len(own)] = own
        costs[j, : len(own)] = draw(st.lists(st.integers(0, 50), min_size=len(own), max_size=len(own)))
    return n, widths, costs, counts


def packed(pack, n, widths, costs, counts):
    """The choice of each job, its cores and its cost."""
    chosen = np.zeros(len(counts), np.int64)
    pack(n, widths, costs, counts, chosen)
    assert np.all(chosen >= 0)
    assert np.all(chosen < counts)
    rows = np.arange(len(counts))
    return chosen, widths[rows, chosen].sum(), costs[rows, chosen].sum()


def least_cost(n, widths, costs, counts):
    """The least cost of all choices that fit, one by one."""
    found = math.inf
    for picked in itertools.product(*(range(count) for count in counts)):
        if sum(widths[j, v] for j, v in enumerate(picked)) <= n:
            found = min(found, sum(costs[j, v] for j, v in enumerate(picked)))
    return found


@settings(max_examples=examples(60))
@given(choices())
def test_dynamic_programming_is_exact(problem):
    """The cost is the least there is, within the cores."""
    n, widths, costs, counts = problem
    _, used, cost = packed(width_choice.pack_exactly, n, widths, costs, counts)
    assert used <= n
    assert cost == least_cost(n, widths, costs, counts)


def liked(widths, costs, count, price, *, wide):
    """The choice with the least cost plus rent, the narrowest or the widest of equals."""
    value = costs[:count] + price * widths[:count]
    tied = np.flatnonzero(value <= value.min() + 1e-9)
    return tied[-1] if wide else tied[0]


@settings(max_examples=examples(60))
@given(choices())
def test_a_price_is_within_one_step(problem):
    """What a price leaves unspent is less than one job's step, and lacks no more than that at this price.

    The price is found here by trying all at which a job changes its mind.
    """
    n, widths, costs, counts = problem
    chosen, used, cost = packed(width_choice.pack_by_price, n, widths, costs, counts)
    assert used <= n
    changes = {
        (costs[j, a] - costs[j, b]) / (widths[j, b] - widths[j, a])
        for j, count in enumerate(counts)
        for a, b in itertools.combinations(range(count), 2)
    }

    def wanted(price, *, wide):
        picked = [liked(widths[j], costs[j], counts[j], price, wide=wide) for j in range(len(counts))]
        return np.array(picked), widths[np.arange(len(counts)), picked].sum()

    price = next(p for p in sorted({0.0, *(p for p in changes if p > 0.0)}) if wanted(p, wide=False)[1] <= n)
    lacks = cost - least_cost(n, widths, costs, counts)
    wide, all_of_them = wanted(price, wide=True)
    if price == 0.0:
        assert lacks == 0.0
    elif all_of_them > n:
        rows = np.arange(len(counts))
        passed = (widths[rows, wide] - widths[rows, chosen])[wide > chosen]
        assert n - used < passed.max()
        assert lacks <= price * (n - used) + 1e-9


def test_the_table_decides_which(monkeypatch):
    """Small problems are solved exactly, large ones by price."""
    widths, costs = np.array([[0.0, 2.0], [0.0, 3.0]]), np.array([[5.0, 1.0], [5.0, 0.0]])
    counts, chosen = np.array([2, 2]), np.zeros(2, np.int64)
    width_choice.pack(3, widths, costs, counts, chosen)
    assert chosen.tolist() == [0, 1]
    monkeypatch.setattr(width_choice, "CELLS", 0.0)
    width_choice.pack(5, widths, costs, counts, chosen)
    assert chosen.tolist() == [1, 1]


def test_ties_in_order():
    """Of equal jobs that want one step more than there is at one price, the earlier have it."""
    widths, costs = np.array([[0.0, 2.0]] * 3), np.array([[4.0, 0.0]] * 3)
    chosen, used, _ = packed(width_choice.pack_by_price, 5, widths, costs, np.array([2, 2, 2]))
    assert (chosen.tolist(), used) == ([1, 1, 0], 4.0)


@pytest.mark.parametrize("noise", [0.0, 4e-16, -4e-16])
def test_rounding_decides_nothing(noise):
    """Two jobs that are each proposed 1.5 of 3 cores: the earlier has 2, whatever the last digits say."""
    wishes = np.array([1.5 + noise, 1.5 - noise])
    widths = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    costs = (widths - wishes[:, None]) ** 2
    chosen, used, _ = packed(width_choice.pack_exactly, 3, widths, costs, np.array([3, 3]))
    assert (chosen.tolist(), used) == ([2, 1], 3)
