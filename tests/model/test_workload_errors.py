"""Wrong workloads and files: each is told what is wrong, and where."""

from __future__ import annotations

import contextlib
import math
import warnings

import pytest
import tomli_w

from malleable.errors import MalleableError, UnknownKindError, WorkloadError
from malleable.model import (
    ConditionWarning,
    Workload,
    builtin_workloads,
    load_workload,
)
from support.documents import document, row

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


def test_unknown_kind_is_a_lookup_error():
    """An unknown kind keeps its type when it is read from Python."""
    with pytest.raises(UnknownKindError, match="did you mean"):
        Workload.from_dict(document(speedup={"kind": "powr", "exponent": 0.5}))
