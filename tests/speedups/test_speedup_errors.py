"""Wrong speedups are told what is wrong; callables may come from a file."""

from __future__ import annotations

import math

import numpy as np
import pytest

from malleable.contracts import Speedup
from malleable.errors import MalleableError, ParameterError, UnknownKindError
from malleable.speedups.linear_power import LinearPower
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from malleable.speedups.table import Table

BAD = [
    ({"kind": "power"}, "exponent"),
    ({"kind": "power", "exponent": 0}, "exponent"),
    ({"kind": "power", "exponent": 1}, "exponent"),
    ({"kind": "power", "exponent": -0.5}, "exponent"),
    ({"kind": "power", "exponent": math.nan}, "exponent"),
    ({"kind": "power", "exponent": "0.5"}, "exponent"),
    ({"kind": "power", "exponent": True}, "exponent"),
    ({"kind": "power", "exponent": [0.5]}, "exponent"),
    ({"kind": "power", "exponent": 0.5, "cores": 3}, "cores"),
    ({"kind": "amdahl", "sequential": 0}, "sequential"),
    ({"kind": "amdahl", "sequential": math.inf}, "sequential"),
    ({"kind": "usl", "contention": 1.0, "coherency": 0}, "contention"),
    ({"kind": "usl", "contention": 0.1, "coherency": -1}, "coherency"),
    ({"kind": "usl", "contention": 0, "coherency": 0}, "rooftop"),
    ({"kind": "rooftop", "cores": 0.5}, "cores"),
    ({"kind": "rooftop", "cores": math.inf}, "cores"),
    ({"kind": "linear_power", "cores": 0, "exponent": 0.5}, "cores"),
    ({"kind": "table", "cores": [1, 2]}, "speedup"),
    ({"kind": "table", "cores": [], "speedup": []}, "cores"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1]}, "speedup has 1"),
    ({"kind": "table", "cores": [1, 2, 2], "speedup": [1, 2, 3]}, r"cores\[2\]"),
    ({"kind": "table", "cores": [1, 3, 2], "speedup": [1, 2, 3]}, r"cores\[2\].*2 follows 3"),
    ({"kind": "table", "cores": [2, 3], "speedup": [1, 2]}, r"cores\[0\].*start at 1"),
    ({"kind": "table", "cores": [1, 2], "speedup": [2, 3]}, r"speedup\[0\].*divide by 2"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, math.nan]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": [1, math.nan], "speedup": [1, 2]}, r"cores\[1\]"),
    ({"kind": "table", "cores": [1, math.inf], "speedup": [1, 2]}, r"cores\[1\]"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, -2]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, 0]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, "2"]}, r"speedup\[1\]"),
    ({"kind": "table", "cores": 1, "speedup": 1}, "cores"),
    ({"kind": "table", "cores": [1, 4, 5], "speedup": [1, 3.7, 2.1]}, "falls from 3.7 at k=4 to 2.1 at k=5"),
    ({"kind": "table", "cores": [1, 4, 5], "speedup": [1, 3.7, 2.1]}, "hull = true"),
    ({"kind": "table", "cores": [1, 2], "speedup": [1, 2], "hull": 1}, "hull"),
    ({"kind": "custom", "function": "nowhere.py:s"}, "nowhere.py"),
    ({"kind": "custom", "function": "not a reference"}, "not a reference"),
    ({"kind": "custom", "function": 5}, "5"),
]


class TestErrors:
    """Bad parameters are named, with their place."""

    @pytest.mark.parametrize(("document", "words"), BAD)
    def test_messages(self, document, words):
        """The message names the key and says what is wrong with it."""
        with pytest.raises(ParameterError, match=words):
            Speedup.of(document)

    def test_unknown_kind(self):
        """A misspelt kind gets a suggestion."""
        with pytest.raises(UnknownKindError, match="did you mean 'amdahl'"):
            Speedup.of({"kind": "amdal", "sequential": 0.1})

    @pytest.mark.parametrize("value", [None, 3, "power", [], {}, {"kind": 3}, {"kind": None}])
    def test_not_a_speedup(self, value):
        """What is neither a table with a kind nor a function is an error of ours."""
        with pytest.raises(MalleableError):
            Speedup.of(value)

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (lambda k: 2.0 * k, r"s\(1\) = 2"),
            (lambda k: k * math.nan, "finite"),
            (lambda k: 2.0 - k, "positive"),
            (lambda _: "fast", "raised"),
            (lambda k: k / 0, "raised"),
            (lambda: 1.0, "raised"),
        ],
    )
    def test_bad_callables(self, function, words):
        """A function with s(1) ≠ 1, with NaN or negative values, or that raises, is refused."""
        with pytest.raises(ParameterError, match=words):
            Speedup.of(function)

    def test_falling_table_with_hull(self):
        """The same table is fine once hull is asked for."""
        s = Table([1, 4, 5], [1, 3.7, 2.1], hull=True)
        assert s(5.0) == 3.7
        assert s.peak == 4.0

    def test_numpy_parameters(self):
        """NumPy arrays and scalars are as good as lists and numbers."""
        assert Table(np.array([1, 2]), np.array([1.0, 1.5])) == Table([1.0, 2.0], (1, 1.5))
        assert Power(np.float64(0.5)) == Power(0.5)
        assert Rooftop(np.int64(4)) == Rooftop(4.0)
        assert LinearPower(2, 0.5) != LinearPower(3, 0.5)


def test_callable_from_a_file(tmp_path):
    """`file.py:name` in a document is read, used, and written back."""
    file = tmp_path / "mine.py"
    file.write_text("def s(k):\n    return k ** 0.5\n")
    s = Speedup.of({"kind": "custom", "function": f"{file}:s"})
    assert s(4.0) == 2.0
    assert Speedup.of(s.to_dict()) == s
