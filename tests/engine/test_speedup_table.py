"""The encoded speedups that rules and kernels read agree with the speedup classes, compiled or not."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import float64, int64, types

import malleable
from malleable import catalog
from malleable.contracts import Speedup
from malleable.engine import speedup_table as flat
from malleable.engine.compiling import F1, compiled
from malleable.errors import ParameterError
from malleable.speedups.custom import Custom
from malleable.speedups.power import Power
from support import strategies as gen
from support.examples import examples

EXACT = tuple(
    kind for kind in sorted(catalog.kinds("speedups")) if flat.formulas_of(catalog.find("speedups", kind))
)
SMOOTH = tuple(kind for kind in EXACT if kind != "table")
WIDTHS = st.one_of(gen.numbers(1.0, 1e6), st.floats(0.0, 1.0), st.integers(1, 60).map(float))
PRICES = st.one_of(gen.numbers(1e-12, 1e6), st.sampled_from([0.0, 1e-280, 1e280]))
WEIGHTS = gen.numbers(1e-3, 1e3)


def mixed(*kinds):
    return st.lists(gen.speedups(*kinds), min_size=1, max_size=5)


def near(got, expected):
    return got == expected or math.isclose(got, expected, rel_tol=1e-12)


def same_choice(got, expected, loss):
    """Two widths are the same, or equally good (a table's edge at exactly its own price)."""
    return near(got, expected) or near(loss(got), loss(expected))


@settings(max_examples=examples(48))
@given(mixed(*EXACT), st.lists(WIDTHS, min_size=1, max_size=8))
def test_speed(speedups, widths):
    """s(k), the peak and the most efficient width agree to 1e-12, below one core too."""
    encoded = flat.encode(speedups)
    assert (encoded[0], encoded[1]) == (len(speedups), len(encoded))
    for i, speedup in enumerate(speedups):
        assert flat.peak(encoded, i) == speedup.peak
        assert flat.most_efficient(encoded, i) == speedup.most_efficient
        for k in widths:
            assert near(flat.speed(encoded, i, k), float(speedup(k)))


@settings(max_examples=examples(48))
@given(mixed(*SMOOTH), st.lists(gen.numbers(0.0, 14.0), min_size=1, max_size=8))
def test_shape(speedups, heights):
    """s, e = k·s'/s and de/dz = e(1 − e) + k²·s''/s at k = e^z agree with the derivatives of the families."""
    encoded = flat.encode(speedups)
    for i, speedup in enumerate(speedups):
        for height in heights:
            z = math.log(float(speedup.most_efficient)) + height + 1e-12  # to the right of a corner
            k = math.exp(z)
            s, s1, s2 = (float(d) for d in speedup.derivatives(k)[:3])
            e = k * s1 / s
            got = flat.shape(encoded, i, z)
            assert math.isclose(got[0], s, rel_tol=1e-12)
            assert math.isclose(got[1], e, rel_tol=1e-12, abs_tol=1e-12)
            assert math.isclose(got[2], e * (1.0 - e) + k * k * s2 / s, rel_tol=1e-9, abs_tol=1e-12)


@settings(max_examples=examples(48))
@given(mixed(*EXACT), PRICES, WEIGHTS)
def test_demand(speedups, price, weight):
    """What a job buys at a price agrees to 1e-12, for WHAM's and for GREEDY's objective, price 0 included."""
    encoded = flat.encode(speedups)
    for i, speedup in enumerate(speedups):
        got, expected = flat.demand(encoded, i, price, weight), float(speedup.demand(price, weight))
        assert same_choice(got, expected, lambda k, s=speedup: (weight + price * k) / float(s(k)))
        with np.errstate(over="ignore"):
            got, expected = (
                flat.work_demand(encoded, i, price, weight),
                float(speedup.work_demand(price, weight)),
            )
        huge = min(got, expected) > 1e17  # where only overflow and stopping rules differ
        assert huge or same_choice(got, expected, lambda k, s=speedup: weight * float(s(k)) - price * k)


@pytest.mark.parametrize("name", gen.FUNCTIONS)
def test_tabulated_function(name):
    """A custom function is tabulated to 1e-6 of s, and the widths it demands cost at most 1e-6 too much."""
    speedup = Custom(gen.FUNCTIONS[name], limit=512.0)
    encoded = flat.encode([Power(0.5), speedup])
    for k in np.concatenate([np.geomspace(1.0, 512.0, 2999), np.arange(1.0, 60.0)]):
        assert math.isclose(flat.speed(encoded, 1, k), float(speedup(k)), rel_tol=1e-6)
    for price in np.geomspace(1e-6, 10.0, 30):
        best, got = float(speedup.demand(price, 1.3)), flat.demand(encoded, 1, price, 1.3)
        assert (1.3 + price * got) / float(speedup(got)) <= (1.3 + price * best) / float(speedup(best)) * (
            1.0 + 1e-6
        )
    assert flat.speed(encoded, 1, 1e4) == flat.speed(encoded, 1, 512.0)


def test_a_subclass_is_not_taken_for_its_family():
    """A speedup that changes a family's formula is tabulated from its own values."""

    class Halved(Power):
        def speed(self, cores):
            return 0.5 + 0.5 * super().speed(cores)

    encoded = flat.encode([Halved(0.5)], widest=100.0)
    assert math.isclose(flat.speed(encoded, 0, 9.0), 2.0, rel_tol=1e-6)


def test_compiled_is_the_same_bit_for_bit():
    """Every function compiles in nopython mode and returns the very same numbers."""
    examples = [
        {"kind": "power", "exponent": 0.3},
        {"kind": "amdahl", "sequential": 0.2},
        {"kind": "usl", "contention": 0.05, "coherency": 0.001},
        {"kind": "usl", "contention": 0.2, "coherency": 0.0},
        {"kind": "rooftop", "cores": 4},
        {"kind": "linear_power", "cores": 4, "exponent": 0.5},
        {"kind": "table", "cores": [1, 2, 4, 8], "speedup": [1, 1.9, 1.5, 2.5], "hull": True},
        {"kind": "table", "cores": [1], "speedup": [1]},
    ]
    encoded = flat.encode([Speedup.of(one) for one in examples])
    arguments = {
        flat.peak: [()],
        flat.most_efficient: [()],
        flat.speed: [(k,) for k in (0.0, 0.5, 1.0, 3.7, 4.0, 900.0)],
        flat.shape: [(z,) for z in (0.0, 0.3, 1.3, math.log(4.0), 6.8)],
        flat.demand: [(price, 1.3) for price in (0.0, 1e-9, 0.01, 0.4, 50.0)],
        flat.work_demand: [(price, 1.3) for price in (0.0, 1e-9, 0.01, 0.4, 50.0)],
    }
    for function, cases in arguments.items():
        result = types.UniTuple(float64, 3) if function is flat.shape else float64
        fast = compiled(function, result(F1, int64, *[float64] * len(cases[0])))
        for i in range(len(examples)):
            for case in cases:
                assert fast(encoded, i, *case) == function(encoded, i, *case)


NEWCOMER = """\
import numpy as np
from malleable import catalog
from malleable.engine import speedup_table as flat
from malleable.fitting import parametric
from malleable.policies.base import job_rows
from malleable.contracts import Policy
from malleable.model import Workload
from malleable.model.jobs import Jobs
from support.strategies import job_class

one = catalog.find("speedups", "saturating")(shared=0.8)
encoded = flat.encode([one, one])
assert not flat.has_corners(encoded, 1)
assert abs(flat.demand(encoded, 1, 0.02, 3.0) - one.demand(0.02, 3.0)) < 1e-12
assert "saturating" in parametric.FAMILIES
rows = [job_class(name, 1.0, 1.0, {"kind": "saturating", "shared": 0.8}, 1.0) for name in ("a", "b")]
jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 1], [1.0, 2.0], weight=[1.0, 4.0])
found = Policy.of("wham").allocate(jobs, 6.0)
assert np.allclose(found.cores, one.demand(found.price, jobs.weight), rtol=1e-9)
print("fast")
"""


def test_a_new_family_is_one_file(tmp_path):
    """The family of CONTRIBUTING, saved in the folder, is encoded by its formulas, and can be fitted."""
    here = Path(malleable.__file__).parent
    package = tmp_path / "malleable"
    shutil.copytree(here, package, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = re.search(r"# file: saturating.py\n(.*?)```", page, re.DOTALL)
    assert text is not None
    (package / "speedups" / "saturating.py").write_text(text[1])
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", NEWCOMER],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "fast\n", done.stderr


def test_noise_is_refused_and_jumps_are_not():
    """A curve that wriggles below any spacing is refused, one that jumps at each core is not."""

    def noisy(k):
        return np.sqrt(k) * (1.0 + 0.01 * (np.sin(1e6 * k) - np.sin(1e6)))

    def jumping(k):
        return np.sqrt(np.floor(k))

    with pytest.raises(
        ParameterError, match="is noisy, or has too many steps: even 1,000,000 points"
    ) as caught:
        flat.encode([Custom(noisy)], widest=1024.0)
    assert "measure it into a table" in caught.value.hint
    assert len(flat.tabulated(Custom(jumping), 1024.0)[0]) < 32 * 1024
