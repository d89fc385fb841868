"""GREEDY's rule in closed form finds its price from wherever it starts."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.policies.rules.class_rules import newton_rule, newton_table
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power

SPEEDUPS = {
    "steep": (Power(0.95), Power(0.3)),
    "flat": (Power(0.1), Power(0.15)),
    "mixed": (Power(0.93), Amdahl(0.02)),
    "amdahl": (Amdahl(0.17), Amdahl(0.24)),
}


@pytest.mark.parametrize("name", SPEEDUPS)
@pytest.mark.parametrize("start", [-60.0, -12.0, -3.0, -1.3, 0.0, 4.0, 40.0])
def test_all_cores_are_given_out_from_any_last_price(name, start):
    """The last price may be that of another state; widths and cores in use are those of a fresh search."""
    speedups = SPEEDUPS[name]
    for counts in ((7.0, 2.0), (3.0, 20.0), (1.0, 20.0), (30.0, 1.0), (0.0, 3.0), (5.0, 0.0)):
        fresh, far = (newton_table(speedups, np.ones(2)) for _ in range(2))
        far[int(far[1])] = start
        expected, got = np.zeros(2), np.zeros(2)
        newton_rule(np.array(counts), 32.0, fresh, expected)
        newton_rule(np.array(counts), 32.0, far, got)
        present = np.array(counts) > 0.0
        assert (np.array(counts) * got)[present].sum() == pytest.approx(32.0, rel=1e-9)
        assert got[present] == pytest.approx(expected[present], rel=1e-9)
