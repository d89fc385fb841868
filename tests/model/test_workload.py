"""Workloads as values: reading, comparing, writing, scaling, and the conditions of the paper."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.errors import MalleableError, ParameterError, WorkloadError
from malleable.model import (
    ConditionWarning,
    JobClass,
    Workload,
    checked_cores,
    paper_workload,
)
from malleable.speedups.power import Power
from support import strategies as gen
from support.documents import document, row
from support.examples import examples


class TestValues:
    """Job classes and workloads are plain frozen values."""

    def test_reading(self):
        """A document becomes the values it spells."""
        workload = Workload.from_dict(document())
        (only,) = workload.classes
        assert (workload.name, only.name, only.holding_cost) == ("test", "etl", 3.0)
        assert only.speedup == Power(0.3)
        assert only.load == pytest.approx(0.4)
        assert workload.total_rate == 2.0
        assert workload.mean_sizes.tolist() == [0.2]

    def test_defaults(self):
        """Names and holding costs may be left out."""
        workload = Workload.from_dict({"classes": [row(name=..., holding_cost=...), row()]})
        assert workload.name == "workload"
        assert workload.class_names == ("class-1", "etl")
        assert workload.holding_costs.tolist() == [1.0, 3.0]

    def test_frozen_comparable_hashable_printable(self):
        """Equal documents make equal values; nothing can be changed; both print."""
        one, two = Workload.from_dict(document()), Workload.from_dict(document())
        assert one == two
        assert hash(one) == hash(two)
        assert one != Workload.from_dict(document(holding_cost=4.0))
        assert len({one.classes[0], two.classes[0]}) == 1
        with pytest.raises(AttributeError):
            one.name = "other"
        with pytest.raises(AttributeError):
            one.classes[0].holding_cost = 2.0
        assert "test" in str(one)
        assert "etl" in str(one)
        assert "Power" in repr(one)
        assert pickle.loads(pickle.dumps(one)) == one
        assert copy.deepcopy(one) == one

    def test_cached_arrays_do_not_leak_into_equality(self):
        """Looking at a workload changes neither its value nor its hash."""
        one, two = paper_workload(), paper_workload()
        _ = one.loads, one.rates, one.mean_sizes, one.holding_costs, one.speedups
        assert one == two
        assert hash(one) == hash(two)

    def test_python_objects(self):
        """Classes may be built from documents, objects and functions alike."""
        from malleable.arrivals.poisson import Poisson
        from malleable.distributions.exponential import Exponential

        by_object = JobClass("etl", Poisson(2.0), Exponential(5.0), Power(0.3), 3.0)
        assert by_object == Workload.from_dict(document()).classes[0]
        by_function = JobClass("etl", Poisson(2.0), Exponential(5.0), lambda k: k**0.5)
        assert by_function.speedup(4.0) == 2.0

    @settings(max_examples=examples(10))
    @given(gen.workloads(*gen.FAST))
    def test_round_trip(self, workload):
        """Documents and files give back the very same workload."""
        assert Workload.from_dict(workload.to_dict()) == workload
        import tomllib

        assert Workload.from_dict(tomllib.loads(workload.to_toml())) == workload

    @settings(max_examples=examples(12))
    @given(st.text(min_size=1, max_size=10).filter(lambda x: x.isprintable() or "\n" in x or "\t" in x))
    def test_round_trip_of_names(self, name):
        """Any name survives a file."""
        import tomllib

        workload = Workload.from_dict({"name": name, "classes": [row(name=name)]})
        assert Workload.from_dict(tomllib.loads(workload.to_toml())) == workload

    def test_workload_needs_classes(self):
        """Wrong contents are refused by the constructor, too."""
        with pytest.raises(WorkloadError, match="at least one class"):
            Workload("empty", ())
        with pytest.raises(WorkloadError, match="must be a JobClass"):
            Workload("wrong", ("etl",))
        good = Workload.from_dict(document()).classes[0]
        with pytest.raises(WorkloadError, match="second class is called 'etl'"):
            Workload("twice", (good, good))

    def test_index(self):
        """Classes are found by name, or a suggestion is made."""
        assert paper_workload().index("class-2") == 1
        with pytest.raises(WorkloadError, match="did you mean 'class-"):
            paper_workload().index("clas-2")

    def test_custom_functions_cannot_be_written(self):
        """A workload with a Python function says so when it is to be written."""
        workload = Workload.from_dict(document(speedup=lambda k: k**0.5))
        with pytest.raises(WorkloadError, match="function"):
            workload.to_toml()


class TestScaling:
    """Rates scale, sizes and the mix stay."""

    @settings(max_examples=examples(16))
    @given(gen.workloads("power"), gen.numbers(1.0, 1e5), gen.numbers(1e-3, 5.0))
    def test_at(self, workload, cores, load):
        """`at` reaches the load asked for and keeps mix, sizes and names."""
        scaled = workload.at(cores, load)
        assert scaled.load(cores) == pytest.approx(load, rel=1e-12)
        np.testing.assert_allclose(
            scaled.rates / scaled.total_rate, workload.rates / workload.total_rate, rtol=1e-12
        )
        assert scaled.mean_sizes.tolist() == workload.mean_sizes.tolist()
        assert scaled.class_names == workload.class_names
        assert workload.at(cores) == workload

    def test_renewal_arrivals_scale(self):
        """Renewal processes get faster, their shape stays."""
        arrivals = {"kind": "renewal", "interval": {"kind": "erlang", "stages": 3, "mean": 2.0}}
        workload = Workload.from_dict(document(arrivals=arrivals))
        fast = workload.scaled(10.0)
        assert fast.rates[0] == pytest.approx(5.0)
        assert fast.classes[0].arrivals.interval.scv == pytest.approx(1 / 3)

    def test_effective_load(self):
        """Effective load counts cores in use: load·k/s(k)."""
        workload = Workload.from_dict(document(speedup={"kind": "power", "exponent": 0.5}))
        assert workload.effective_load(8, np.array([4.0])) == pytest.approx(0.4 * 2.0 / 8.0)
        assert workload.load(8) == pytest.approx(0.05)

    @pytest.mark.parametrize("load", [0, -1, math.nan, math.inf, "half", True])
    def test_bad_loads(self, load):
        """A load must be a positive number; the message says which argument."""
        with pytest.raises(ParameterError, match="load"):
            paper_workload().at(8, load)

    @pytest.mark.parametrize("cores", [0, 0.99, -1, math.nan, math.inf, "x", None, [], "1e400", 1j])
    def test_bad_cores(self, cores):
        """Cores must be a finite number of at least 1."""
        with pytest.raises(ParameterError, match="cores must be"):
            checked_cores(cores)

    def test_enormous_cores(self):
        """A whole number too large for a float is an error of ours."""
        with pytest.raises(ParameterError, match="cores must be"):
            checked_cores(10**400)

    @pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, 1e-320, 1e308])
    def test_factors_out_of_range(self, factor):
        """Factors that no rate survives are errors of ours."""
        with contextlib.suppress(MalleableError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            assert 0.0 < paper_workload().scaled(factor).total_rate < math.inf


class TestConditions:
    """The paper's moment conditions."""

    def test_sizes_without_third_moment(self):
        """The warning names the class and the condition."""
        with pytest.warns(ConditionWarning, match="class 'etl': sizes have no finite third moment"):
            Workload.from_dict(document(size={"kind": "pareto", "shape": 2.5, "mean": 1.0}))

    def test_intervals_without_second_moment(self):
        """The same for inter-arrival times."""
        arrivals = {"kind": "renewal", "interval": {"kind": "pareto", "shape": 1.5, "mean": 1.0}}
        with pytest.warns(ConditionWarning, match="class 'etl': inter-arrival times have no finite second"):
            Workload.from_dict(document(arrivals=arrivals))

    def test_no_warning_without_reason(self):
        """Light tails give no warning (warnings are errors here)."""
        Workload.from_dict(document(size={"kind": "pareto", "shape": 3.5, "mean": 1.0}))

    def test_infinite_mean(self):
        """A mean that does not exist is an error, not a warning."""
        with pytest.raises(MalleableError, match=r"classes\[0\]\.size"):
            Workload.from_dict(document(size={"kind": "pareto", "shape": 0.9, "mean": 1.0}))
