"""Allowed widths and the cost of a resize: what they mean, how they are written, and what is refused."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable.engine.width_table import MOST_PAUSES, encode_limits, pause_between
from malleable.errors import ParameterError
from malleable.model import JobType, Workload
from malleable.model.resize import Resize
from malleable.model.widths import Widths
from support import strategies as gen

POWER = {"kind": "power", "exponent": 0.5}


@pytest.mark.parametrize(
    ("given_widths", "on_10", "least"),
    [
        ("any", None, 1),
        ("whole", list(range(1, 11)), 1),
        ("powers-of-two", [1, 2, 4, 8], 1),
        ([4, 2, 2, 16], [2, 4], 2),
        ({"min": 2, "max": 7, "step": 2}, [2, 4, 6], 2),
        ({"min": 3}, [3, 4, 5, 6, 7, 8, 9, 10], 3),
        ({"max": 2}, [1, 2], 1),
        ({"step": 4}, [1, 5, 9], 1),
        ({"min": 11}, [], 11),
    ],
)
def test_what_is_allowed(given_widths, on_10, least):
    """The widths on ten cores, and on ten and a half."""
    made = Widths.of(given_widths)
    for cores in (10, 10.5, 10.0 - 1e-12):
        found = made.allowed(cores)
        assert found is None if on_10 is None else found.tolist() == on_10
    assert made.least == least
    assert made.unrestricted == (on_10 is None)
    assert Widths.of(made) is made
    assert Widths.of(made.to_dict()) == made
    assert pickle.loads(pickle.dumps(made)) == made


@given(st.integers(1, 300))
def test_powers_of_two(cores):
    """All powers of two up to n, and no more."""
    found = Widths.of("powers-of-two").allowed(cores)
    assert found.tolist() == [2.0**level for level in range(12) if 2**level <= cores]


@pytest.mark.parametrize(
    "keys",
    [
        {"shape": "rigid", "width": 3},
        {"shape": "moldable", "widths": [1, 2]},
        {"widths": {"min": 2, "step": 2}, "quiet": 2.0},
        {"resize": {"pause": 0.5, "work": 0.1}},
        {"resize": {"work": 0.1}, "widths": "powers-of-two"},
    ],
)
def test_written_and_read(keys):
    """A workload with such classes is written to a file and read again as it was; defaults are left out."""
    workload = Workload.from_dict({"classes": [gen.job_class("a", 1.0, 1.0, POWER, 1.0) | keys]})
    document = workload.to_dict()
    assert {key: document["classes"][0][key] for key in keys} == keys
    assert Workload.from_dict(document) == workload

    assert Workload.from_dict(tomllib.loads(workload.to_toml())) == workload


def test_plain_jobs():
    """Jobs are plain if nothing at all is demanded of them."""
    assert JobType("a", POWER).plain
    assert JobType("a", POWER, resize={"pause": 0.0}).plain
    for keys in ({"shape": "moldable"}, {"widths": "whole"}, {"quiet": 1.0}, {"resize": {"work": 1.0}}):
        assert not JobType("a", POWER, **keys).plain
    assert JobType("a", POWER, shape="moldable").allowed_widths == Widths.of("whole")
    assert JobType("a", POWER, shape="moldable", widths=[2, 4]).allowed_widths == Widths.of([2, 4])


def test_a_pause_is_a_number_or_a_function(tmp_path, monkeypatch):
    """A function of both widths is given as it is, or by its file, and then can be written again."""
    monkeypatch.chdir(tmp_path)
    Path("costs.py").write_text("def far(before, after):\n    return abs(before - after)\n")
    named = Resize.of({"pause": "costs.py:far"})
    assert named.varies
    assert not named.free
    assert named.to_dict() == {"pause": "costs.py:far"}
    assert pickle.loads(pickle.dumps(named)).to_dict() == named.to_dict()
    bare = Resize.of(lambda before, after: before + after)
    with pytest.raises(ParameterError, match="a Python function cannot be written to a document"):
        bare.to_dict()
    assert Resize.of(bare) is bare
    assert Resize(2.0, 1.0).to_dict() == {"pause": 2.0, "work": 1.0}


def test_the_table_of_pauses():
    """Rows are widths before and columns widths after, no cores first; no resize and no cores are free."""
    widths = np.array([1.0, 4.0])
    table = Resize(lambda before, after: 10.0 * before + after).pauses(widths)
    assert table.tolist() == [[0.0, 1.0, 4.0], [0.0, 0.0, 14.0], [0.0, 41.0, 0.0]]
    assert Resize(0.5).pauses(widths).tolist() == [[0.5] * 3] * 3
    limits = encode_limits(
        [JobType("a", POWER), JobType("b", POWER, widths=[1, 4], resize=lambda b, a: 10.0 * b + a)], 8
    )
    assert [pause_between(limits, 1, b, a) for b, a in ((0.0, 4.0), (1.0, 4.0), (4.0, 1.0))] == [
        4.0,
        14.0,
        41.0,
    ]
    assert pause_between(limits, 0, 1.0, 2.0) == 0.0


def test_too_many_widths_for_a_table():
    """A table of pauses has a limit, which is told."""
    far = {"widths": "whole", "resize": lambda before, after: before + after}
    with pytest.raises(ParameterError) as caught:
        encode_limits([JobType("a", POWER, **far)], MOST_PAUSES + 1)
    assert f"a list of at most {MOST_PAUSES}" in caught.value.hint


def test_a_pause_function_is_its_content(tmp_path):
    """A document with a pause function read twice is the same; edit the function and it is another."""
    file = tmp_path / "costs.py"

    def read(factor):
        file.write_text(f"def pause(before, after):\n    return {factor} * abs(after - before)\n", "utf-8")
        return Resize.of({"pause": f"{file}:pause"})

    first, again, edited = read(0.5), read(0.5), read(0.7)
    assert first == again
    assert hash(first) == hash(again)
    assert first != edited
    assert pickle.loads(pickle.dumps(first.to_dict())) == again.to_dict()
