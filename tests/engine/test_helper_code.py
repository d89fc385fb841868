"""Helpers are compiled into what calls them, once, and leave no symbols of their own."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64

from malleable.catalog import families
from malleable.engine import code_cache, compiling
from malleable.engine.compiling import compiled


def scaled(x, factor):
    return x * factor


def by_constants(x):
    return scaled(x, 2) + scaled(x, 3) + scaled(x, int(x))


def loud(x):
    print("x is", x)  # noqa: T201 - what is tested
    return x


def tells(x):
    return loud(x) + 1.0


@pytest.fixture
def ours(monkeypatch, tmp_path):
    """The functions of this file count as the library's, and nothing has been compiled yet."""
    monkeypatch.setattr(families, "OWN", __name__.partition(".")[0])
    monkeypatch.setattr(code_cache, "cache_folder", lambda: tmp_path)
    forget()


def forget():
    compiling._compiled_once.cache_clear()
    compiling._helper.cache_clear()


def test_constants_are_numbers(ours):
    """A helper that is called with 2, with 3 and with a variable is compiled once."""
    assert compiled(by_constants, float64(float64))(5.0) == 50.0
    assert len(compiling._helper(scaled).overloads) == 1


def test_no_symbols_of_helpers(ours):
    """All that is left to be found is the function itself and its wrappers."""
    made = compiled(by_constants, float64(float64)).overloads[(float64,)]
    names = [one.name for one in made.library.get_defined_functions() if one.linkage.name != "internal"]
    assert names
    assert all("by_constants" in name for name in names)


def test_helpers_may_print(ours, capfd, tmp_path):
    """Printing needs a function's environment: those of helpers are there, compiled now or loaded."""
    for _ in range(2):
        forget()
        assert compiled(tells, float64(float64))(2.0) == 3.0
        assert capfd.readouterr().out == "x is 2.0\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_many_arguments_at_once(ours):
    """The compiled function gives what Python gives."""
    made = compiled(by_constants, float64(float64))
    for x in np.linspace(0.0, 9.0, 10):
        assert made(x) == by_constants(x)
