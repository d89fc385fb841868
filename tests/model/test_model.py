"""Workloads: validation, files, scaling, and a parser that never fails but with an error of ours."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from malleable.errors import MalleableError, ParameterError, UnknownKindError, WorkloadError
from malleable.model import (
    ConditionWarning,
    JobClass,
    Workload,
    builtin_workloads,
    checked_cores,
    load_workload,
    paper_workload,
)
from malleable.speedups.power import Power
from support import strategies as gen


def row(**changes):
    """A good class; a key set to `...` is left out."""
    keys = {
        "name": "etl",
        "arrivals": {"kind": "poisson", "rate": 2.0},
        "size": {"kind": "exponential", "rate": 5.0},
        "speedup": {"kind": "power", "exponent": 0.3},
        "holding_cost": 3.0,
        **changes,
    }
    return {key: value for key, value in keys.items() if value is not ...}


def document(**changes):
    return {"name": "test", "classes": [row(**changes)]}


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

    @settings(max_examples=25, deadline=None)
    @given(gen.workloads(*gen.FAST))
    def test_round_trip(self, workload):
        """Documents and files give back the very same workload."""
        assert Workload.from_dict(workload.to_dict()) == workload
        import tomllib

        assert Workload.from_dict(tomllib.loads(workload.to_toml())) == workload

    @settings(max_examples=30, deadline=None)
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

    @settings(max_examples=40, deadline=None)
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
        """Light tails warn nobody (warnings are errors here)."""
        Workload.from_dict(document(size={"kind": "pareto", "shape": 3.5, "mean": 1.0}))

    def test_infinite_mean(self):
        """A mean that does not exist is an error, not a warning."""
        with pytest.raises(MalleableError, match=r"classes\[0\]\.size"):
            Workload.from_dict(document(size={"kind": "pareto", "shape": 0.9, "mean": 1.0}))


ERRORS = [
    (document(name=""), r"classes\[0\]\.name: must not be empty"),
    (document(name=3), r"classes\[0\]\.name"),
    (document(arrivals=...), r"classes\[0\]: missing key 'arrivals'"),
    (document(size=...), r"classes\[0\]: missing key 'size'"),
    (document(speedup=...), r"classes\[0\]: missing key 'speedup'"),
    (document(color="red"), r"classes\[0\].*'color'"),
    (document(hodling_cost=1.0), r"did you mean 'holding_cost'"),
    (document(holding_cost=0), r"classes\[0\]\.holding_cost"),
    (document(holding_cost=math.nan), r"classes\[0\]\.holding_cost"),
    (document(holding_cost="1"), r"classes\[0\]\.holding_cost"),
    (document(arrivals={"kind": "poisson", "rate": -1}), r"classes\[0\]\.arrivals\.rate: .*got -1"),
    (document(arrivals={"kind": "poisson", "rate": math.nan}), r"classes\[0\]\.arrivals\.rate: .*got nan"),
    (document(arrivals={"kind": "poisson", "rate": math.inf}), r"classes\[0\]\.arrivals\.rate: .*finite"),
    (document(arrivals={"kind": "poisson"}), r"classes\[0\]\.arrivals: missing key 'rate'"),
    (document(arrivals={"rate": 1}), r"classes\[0\]\.arrivals: missing key 'kind'"),
    (document(arrivals=1.0), r"classes\[0\]\.arrivals: must be a table"),
    (document(arrivals={"kind": "poison", "rate": 1}), r"arrivals\.kind.*did you mean 'poisson'"),
    (
        document(arrivals={"kind": "renewal", "interval": {"kind": "erlang", "stages": 0, "mean": 1}}),
        r"classes\[0\]\.arrivals\.interval\.stages",
    ),
    (document(size={"kind": "exponental", "rate": 1}), r"size\.kind.*did you mean 'exponential'"),
    (document(size={"kind": "exponential", "rate": 1, "mean": 1}), r"classes\[0\]\.size.*not both"),
    (document(size={"kind": "exponential", "mean": -1}), r"classes\[0\]\.size\.mean"),
    (document(size={"kind": 7}), r"classes\[0\]\.size\.kind"),
    (
        document(speedup={"kind": "table", "cores": [1, 2], "speedup": [2, 3]}),
        r"speedup\.speedup\[0\].*must be 1",
    ),
    (
        document(speedup={"kind": "table", "cores": [1, 4, 5], "speedup": [1, 3.7, 2.1]}),
        r"falls from 3\.7.*hull = true",
    ),
    ({"name": 5, "classes": [row()]}, "name: must be a string"),
    ({"name": "x"}, "at least one class"),
    ({"name": "x", "classes": []}, "at least one class"),
    ({"name": "x", "classes": {}}, "at least one class"),
    ({"name": "x", "classes": [3]}, r"classes\[0\]: must be a table"),
    ({"name": "x", "clases": [row()]}, "unknown key 'clases'.*did you mean 'classes'"),
    ({"name": "x", "classes": [row(), row()]}, r"classes\[1\]\.name.*second class is called 'etl'"),
    ({"name": "x", "classes": [row(), row(name="b", size=...)]}, r"classes\[1\]: missing key 'size'"),
]


class TestErrors:
    """Each mistake is named with its place in the document."""

    @pytest.mark.parametrize(("wrong", "words"), ERRORS)
    def test_documents(self, wrong, words):
        """The path, the value and the remedy stand in the message."""
        with pytest.raises(MalleableError, match=words) as caught:
            Workload.from_dict(wrong)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [(wrong, words) for wrong, words in ERRORS if "nan" not in repr(wrong)],
    )
    def test_files(self, tmp_path, wrong, words):
        """The same mistakes in a file name the file as well."""
        file = tmp_path / "mine.toml"
        file.write_text(tomli_w.dumps(wrong))
        with pytest.raises(WorkloadError, match=words) as caught:
            load_workload(file)
        assert "mine.toml" in str(caught.value)

    def test_keys_that_are_not_strings(self):
        """Python dictionaries may have odd keys; they are named, too."""
        for wrong in ({5: 1, "classes": [row()]}, {"classes": [{**row(), 5: 1}]}):
            with pytest.raises(MalleableError, match="5"):
                Workload.from_dict(wrong)
        with pytest.raises(MalleableError, match="keys must be strings"):
            Workload.from_dict(document(speedup={"kind": "power", 5: 1}))

    @pytest.mark.parametrize("wrong", [None, 3, "text", [], [("name", "x")]])
    def test_not_a_document(self, wrong):
        """What is no table at all is an error of ours."""
        with pytest.raises(MalleableError):
            Workload.from_dict(wrong)


class TestFiles:
    """`load_workload`."""

    def test_builtin(self):
        """`paper` is built in and has the classes that DESIGN.md names."""
        assert "paper" in builtin_workloads()
        assert load_workload("paper").class_names == ("class-1", "class-2", "class-3")

    def test_name_of_the_file(self, tmp_path):
        """A file without a name is called after itself."""
        file = tmp_path / "cluster.toml"
        file.write_text(tomli_w.dumps({"classes": [row()]}))
        assert load_workload(file).name == "cluster"
        assert load_workload(str(file)) == load_workload(file)

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "is empty"),
            (b"# only a comment\n", "is empty"),
            (b"name = ", "not valid TOML"),
            (b"{}", "not valid TOML"),
            (b"name = 'x'\nname = 'y'", "not valid TOML"),
            (b"\xff\xfe\x00\x01", "not a text file"),
            (b"\x00\x01\x02", "not valid TOML|not a text file"),
            (b"[[classes]]\n", "missing key 'arrivals'"),
            (b"classes = 3", "at least one class"),
            (b"x = " + b"1" * 5000, "not valid TOML|unknown key"),
            (b"name = 0x" + b"f" * 5000, "name|digits"),
            (b"[[classes]]\nname = 0x" + b"f" * 5000, "classes"),
            (b"classes = " + b"[" * 100_000, "not valid TOML"),
            (b"name = 1979-05-27\n[[classes]]\n", "name: must be a string"),
        ],
    )
    def test_bad_content(self, tmp_path, content, words):
        """Files that are empty, binary or not TOML say so."""
        file = tmp_path / "bad.toml"
        file.write_bytes(content)
        with pytest.raises(WorkloadError, match=words):
            load_workload(file)

    def test_missing(self):
        """A missing file suggests what is there."""
        with pytest.raises(WorkloadError, match=r"no workload or file 'papr'.*did you mean 'paper'"):
            load_workload("papr")

    @pytest.mark.parametrize("source", ["a\0b", "", ".", "x" * 5000, "paper/nothing", "~nobody"])
    def test_odd_paths(self, source):
        """Directories, impossible names and empty paths are errors of ours."""
        with pytest.raises(WorkloadError):
            load_workload(source)

    def test_directory(self, tmp_path):
        """A directory is not a workload."""
        with pytest.raises(WorkloadError, match="cannot read"):
            load_workload(tmp_path)


EXTREME = [
    {"kind": "exponential", "mean": 1e200},
    {"kind": "exponential", "rate": 1e200},
    {"kind": "exponential", "rate": 1e-320},
    {"kind": "deterministic", "value": 1e200},
    {"kind": "deterministic", "value": 1e-200},
    {"kind": "uniform", "low": 0.0, "high": 1e300},
    {"kind": "lognormal", "mean": 1e200, "sigma": 1e100},
    {"kind": "lognormal", "mean": 1.0, "sigma": 30.0},
    {"kind": "empirical", "values": [1e300, 1e300]},
    {"kind": "gamma", "shape": 1e-300, "mean": 1e200},
    {"kind": "weibull", "shape": 1e-2, "mean": 1.0},
    {"kind": "bounded_pareto", "shape": 1e200, "low": 1e-200, "high": 1e200},
    {"kind": "hyperexponential", "probabilities": [1.0], "rates": [1e-200]},
    {"kind": "phase_type", "initial": [1.0], "generator": [[-1e-200]]},
    {"kind": "erlang", "stages": 10**30, "mean": 1.0},
    {"kind": "pareto", "shape": 1e300, "mean": 1.0},
]


@pytest.mark.parametrize("law", EXTREME)
@pytest.mark.parametrize("place", ["size", "arrivals"])
def test_extreme_numbers(law, place):
    """Numbers at the end of the float range give a workload or an error of ours, never an overflow."""
    value = law if place == "size" else {"kind": "renewal", "interval": law}
    with contextlib.suppress(MalleableError), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        assert Workload.from_dict(document(**{place: value})).total_load >= 0.0


# --- a parser that never fails but with an error of ours --------------------------------------------------

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

    @settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(mutants())
    def test_mutated_documents(self, wrong):
        """Overwriting parts of a valid document by anything never raises anything else."""
        with contextlib.suppress(MalleableError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            workload = Workload.from_dict(wrong)
            assert str(workload)
            assert workload.total_load >= 0.0

    @settings(max_examples=100, deadline=None)
    @given(
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(["name", "classes"])), VALUES, max_size=3
        )
    )
    def test_random_documents(self, wrong):
        """Nor do documents made up from nothing."""
        with pytest.raises(MalleableError):
            Workload.from_dict(wrong)

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_unknown_kind_is_a_lookup_error():
    """An unknown kind keeps its type when it is read from Python."""
    with pytest.raises(UnknownKindError, match="did you mean"):
        Workload.from_dict(document(speedup={"kind": "powr", "exponent": 0.5}))
