"""Fixed widths on what is left of a machine."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.engine.rule_interface import CLASS, COLUMNS
from malleable.policies.rules.fixed_widths import fixed_width, pools_table


@pytest.mark.parametrize(("cores", "wanted"), [(7.0, [3, 1, 3]), (4.0, [3, 1, 0]), (2.0, [0, 1, 0])])
def test_pools_on_fewer_cores_than_planned(cores, wanted):
    """Separate pools made for seven cores never give out more than there are when nodes have failed."""
    rows, out = np.zeros((3, COLUMNS)), np.empty(3)
    rows[:, CLASS] = 1.0, 0.0, 1.0
    fixed_width(rows, cores, pools_table(np.array([1.0, 3.0]), np.array([1.0, 2.0])), out)
    assert out.tolist() == wanted
