"""What depends on the workload alone is computed once, also where it fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from malleable import simulate
from malleable.contracts import Distribution, Policy
from malleable.errors import UnsupportedError
from malleable.model import JobClass, Workload
from malleable.model.memoization import memoized


@dataclass(frozen=True)
class Listed(Distribution):
    """A user's law that does not hash: any of some values, in a table."""

    table: dict

    def moment(self, order):
        return float(np.mean([value**order for value in self.table["values"]]))

    def sample(self, rng, size):
        return rng.choice(self.table["values"], size)

    def scaled(self, factor):
        return Listed({"values": [factor * value for value in self.table["values"]]})


def counted(outcome):
    """A function that is memoized, and the list of what it was asked."""
    asked = []

    @memoized
    def make(argument):
        asked.append(argument)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return make, asked


@pytest.mark.parametrize("error", [TypeError("no"), UnsupportedError("no", "do not ask"), ValueError("no")])
def test_what_fails_is_run_once(error):
    """An error of the function is its own, raised by one run of it: a TypeError does not ask it again."""
    make, asked = counted(error)
    with pytest.raises(type(error)) as caught:
        make(1)
    assert caught.value is error
    assert caught.value.__context__ is None
    assert asked == [1]


def test_values_are_kept_and_what_does_not_hash_is_made_each_time():
    """The second call with the same argument runs nothing; an argument that does not hash is no error."""
    make, asked = counted("made")
    assert [make(1), make(1), make([2]), make([2])] == ["made"] * 4
    assert asked == [1, [2], [2]]


@pytest.mark.parametrize("name", ["wham", "fw-cam", "fw-cam-repaired", "equi"])
def test_a_law_that_does_not_hash(name):
    """A user's law may hold what does not hash: the run is that of the same law as the library has it."""

    def cost(size):
        one = JobClass("only", {"kind": "poisson", "rate": 1.0}, size, {"kind": "power", "exponent": 0.5})
        return simulate(Workload("w", (one,)), 64, Policy.of(name), load=0.25, jobs=2000).cost

    values = [0.5, 1.0, 1.5]
    assert cost(Listed({"values": values})) == cost(Listed({"values": values}))
    known = cost({"kind": "empirical", "values": values})
    assert abs(cost(Listed({"values": values})).mean - known.mean) < 4.0 * (known.half_width + 1e-9)
