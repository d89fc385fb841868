"""Many settings in one launch, without a GPU: the kernels run in numba's simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from malleable.contracts import Distribution
from malleable.engine.gpu.laws import scaled_table, tabulate
from support.cuda_simulator import check_cases

CASES = Path(__file__).with_name("simulator_sweep_cases.py")


def test_sweeps_in_the_simulator():
    """Every case of `simulator_sweep_cases.py` passes: a sweep leaves the sums of the runs one by one."""
    check_cases(CASES)


@pytest.mark.parametrize(
    "law",
    [
        {"kind": "erlang", "stages": 3, "mean": 7.3},
        {"kind": "scipy", "law": "binom", "parameters": {"n": 4, "p": 0.3, "loc": 1}},
    ],
)
def test_tables_of_scaled_laws(law):
    """A law's table is that of the law of mean 1, moved: the same values as if it were made anew."""
    made = Distribution.of(law)
    own, moved = tabulate(made), scaled_table(made)
    assert own.steps == moved.steps
    np.testing.assert_allclose(moved.values, own.values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved.slopes, own.slopes, rtol=1e-6, atol=1e-9)
