"""The best division of the cores among the jobs present, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from malleable.contracts import Speedup
from malleable.theory.core_division import RealCores, WholeCores, most_speed
from malleable.theory.markov_chain import Lattice
from support.chains import AMDAHL, BUMPY, POWER


def divisions(counts, cores):
    """Every way to give whole cores to every single job, as lists of widths, part after part."""
    owner = np.repeat(np.arange(len(counts)), counts)
    for widths in itertools.product(range(cores + 1), repeat=len(owner)):
        if sum(widths) <= cores:
            yield owner, np.array(widths, dtype=float)


@pytest.mark.parametrize("kinds", [(POWER, AMDAHL), (BUMPY, POWER), ({"kind": "rooftop", "cores": 3}, BUMPY)])
def test_whole_cores_beat_every_division(kinds):
    """In every small state the convolution finds the best of all divisions, concave speedups or not."""
    rng = np.random.default_rng(1)
    cores, speedups = 4, [Speedup.of(kind) for kind in kinds]
    states = Lattice(2, 4).states
    gains = rng.normal(0.5, 1.0, states.shape)
    found = WholeCores(speedups, states, cores).best(gains)
    assert (found.cores.sum(axis=1) <= cores).all()
    for state, gain, speeds in zip(states, gains, found.speeds, strict=True):
        best = max(
            sum(gain[p] * float(speedups[p](k)) for p, k in zip(owner, widths, strict=True))
            for owner, widths in divisions(state, cores)
        )
        assert gain @ speeds == pytest.approx(best, abs=1e-12)


def test_most_speed_is_a_balanced_split_for_concave_speedups():
    """Five jobs on 17 cores: two on four, three on three; and a job without a core does nothing."""
    s = Speedup.of(POWER)
    table = most_speed(s, 5, 17)
    assert table[5, 17] == pytest.approx(2 * np.sqrt(4) + 3 * np.sqrt(3))
    assert table[5, 3] == 3.0
    assert table[0].max() == 0.0


def test_whole_cores_that_do_not_help_are_not_given():
    """A lone rooftop job takes its κ, although more would do no harm."""
    states = np.array([[1, 0], [1, 1]])
    speedups = [Speedup.of({"kind": "rooftop", "cores": 2}), Speedup.of({"kind": "rooftop", "cores": 1})]
    found = WholeCores(speedups, states, 6).best(np.ones((2, 2)))
    assert found.cores.tolist() == [[2.0, 0.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    "kinds",
    [(POWER, AMDAHL), ({"kind": "rooftop", "cores": 3}, POWER), ({"kind": "rooftop", "cores": 1},) * 2],
)
def test_real_cores_beat_a_fine_grid(kinds):
    """No division between two parts on a fine grid beats the price, and no core is given twice."""
    rng = np.random.default_rng(2)
    cores, speedups = 7.0, [Speedup.of(kind) for kind in kinds]
    states = Lattice(2, 12).states
    gains = rng.uniform(-0.3, 1.0, states.shape)
    found = RealCores(speedups, states, cores).best(gains)
    assert (found.cores.sum(axis=1) <= cores * (1.0 + 1e-12)).all()
    grid = np.linspace(0.0, cores, 2001)
    for state, gain, speeds in zip(states, gains, found.speeds, strict=True):
        total = [
            n * np.asarray(s(a / max(n, 1)))
            for n, s, a in zip(state, speedups, (grid, cores - grid), strict=True)
        ]
        worth = np.maximum(gain[0], 0.0) * total[0] + np.maximum(gain[1], 0.0) * total[1]
        assert worth.max() - 1e-9 <= gain @ speeds <= worth.max() + 2e-3
