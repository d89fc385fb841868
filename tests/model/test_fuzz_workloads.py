"""A parser that never fails but with an error of ours."""

from __future__ import annotations

import contextlib
import copy
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from malleable.errors import MalleableError
from malleable.model import (
    ConditionWarning,
    Workload,
    builtin_workloads,
    load_workload,
)
from support.documents import row
from support.examples import examples

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**320), 10**320),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["power", "table", "exponential", "poisson", "erlang", "custom", "scipy", "empirical"]),
    st.dates(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(["kind", "rate", "cores", "values"])),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)
SIZES = st.sampled_from(
    [
        {"kind": "exponential", "rate": 5.0},
        {"kind": "hyperexponential", "probabilities": [0.5, 0.5], "rates": [1.0, 9.0]},
        {"kind": "erlang", "stages": 3, "mean": 1.0},
        {"kind": "phase_type", "initial": [1.0, 0.0], "generator": [[-2.0, 1.0], [0.0, -1.0]]},
        {"kind": "coxian", "rates": [3.0, 1.0], "probabilities": [0.7]},
        {"kind": "lognormal", "mean": 1.0, "sigma": 1.0},
        {"kind": "weibull", "shape": 0.7, "mean": 1.0},
        {"kind": "pareto", "shape": 4.0, "mean": 1.0},
        {"kind": "bounded_pareto", "shape": 1.5, "low": 0.1, "high": 10.0},
        {"kind": "gamma", "shape": 2.0, "mean": 1.0},
        {"kind": "uniform", "low": 0.0, "high": 1.0},
        {"kind": "deterministic", "value": 1.0},
        {"kind": "empirical", "values": [1.0, 2.0]},
        {"kind": "scipy", "law": "expon", "parameters": []},
    ]
)
SPEEDUPS = st.sampled_from(
    [
        {"kind": "power", "exponent": 0.5},
        {"kind": "amdahl", "sequential": 0.2},
        {"kind": "usl", "contention": 0.1, "coherency": 0.01},
        {"kind": "rooftop", "cores": 4},
        {"kind": "linear_power", "cores": 4, "exponent": 0.5},
        {"kind": "table", "cores": [1, 2, 4], "speedup": [1.0, 1.8, 2.5], "hull": True},
        {"kind": "custom", "function": "nowhere.py:s"},
    ]
)

ONE_FOLDER = [HealthCheck.function_scoped_fixture]
"""All examples of a test may write into its one folder."""


def places(value, path=()):
    """Every place in a nested document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@st.composite
def mutants(draw):
    """A valid document in which a few places were overwritten, removed or added to."""
    good = {
        "name": "x",
        "classes": [
            row(
                name=f"c{i}",
                size=draw(SIZES),
                speedup=draw(SPEEDUPS),
                arrivals=draw(
                    st.one_of(
                        st.just({"kind": "poisson", "rate": 1.0}),
                        SIZES.map(lambda law: {"kind": "renewal", "interval": law}),
                    )
                ),
            )
            for i in range(draw(st.integers(1, 2)))
        ],
    }
    wrong = copy.deepcopy(good)
    for _ in range(draw(st.integers(0, 3))):
        spots = [p for p in places(wrong) if p]
        if not spots:
            break
        *way, last = draw(st.sampled_from(spots))
        inside = wrong
        for key in way:
            inside = inside[key]
        match draw(st.sampled_from(["set", "remove", "add"])):
            case "set":
                inside[last] = draw(VALUES)
            case "remove" if isinstance(inside, dict):
                del inside[last]
            case _ if isinstance(inside, dict):
                inside[draw(st.text(max_size=4))] = draw(VALUES)
    return wrong


class TestFuzz:
    """Random documents: a workload or a `MalleableError`."""

    @settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
    @given(mutants())
    def test_mutated_documents(self, wrong):
        """Overwriting parts of a valid document by anything never raises anything else."""
        with contextlib.suppress(MalleableError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            workload = Workload.from_dict(wrong)
            assert str(workload)
            assert workload.total_load >= 0.0

    @settings(max_examples=examples(40))
    @given(
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(["name", "classes"])), VALUES, max_size=3
        )
    )
    def test_random_documents(self, wrong):
        """Nor do documents made up from nothing."""
        with pytest.raises(MalleableError):
            Workload.from_dict(wrong)

    @settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.one_of(
            st.binary(max_size=60),
            st.text(alphabet="[]{}=.\"'# \n0123456789_-eEinfantrue\\:classesname", max_size=60).map(
                str.encode
            ),
        )
    )
    def test_random_files(self, tmp_path, content):
        """Nor do files of random bytes and almost-TOML."""
        file = tmp_path / "random.toml"
        file.write_bytes(content)
        with pytest.raises(MalleableError):
            load_workload(file)

    @settings(max_examples=examples(24), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 10_000), st.binary(max_size=4))
    def test_damaged_files(self, tmp_path, position, damage):
        """Nor does the built-in workload with bytes overwritten."""
        good = builtin_workloads()["paper"].read_bytes()
        at = position % len(good)
        file = tmp_path / "damaged.toml"
        file.write_bytes(good[:at] + damage + good[at + len(damage) :])
        with contextlib.suppress(MalleableError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            assert load_workload(file).classes
