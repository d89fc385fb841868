"""What people type and pass: counts, loads, lists of policies, standard input, options that are lists."""

from __future__ import annotations

import json

import numpy as np
import pytest

from malleable import bound, compare, load_workload, simulate
from malleable.contracts import Policy
from malleable.errors import MalleableError, ParameterError, WorkloadError, to_install
from malleable.model import builtin_workloads, paper_workload, parse_workload
from malleable.policies.fixed_width import FixedWidth
from malleable.policies.wham import Wham
from malleable.simulation import Settings
from support.shell import malleable, shell

PAPER = builtin_workloads()["paper"].read_text(encoding="utf-8")
COUNTS = {"jobs": 1, "replications": 1, "seed": 0, "warmup": 0}


# --- counts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(
    "value", [1000, np.int64(1000), np.uint8(100), 1e5, np.float64(1e5), np.float32(64.0), 10**400]
)
def test_counts(name, value):
    """Whole numbers of Python and NumPy are counts, also those written as floats."""
    found = getattr(Settings(**{name: value}), name)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(
    "value", [True, False, np.True_, 1.5, -1, np.nan, np.inf, "5", [5], 1j, np.array([5]), -1e5]
)
def test_not_counts(name, value):
    """Truth values, fractions, text and negative numbers are refused, with the name and the value."""
    words = f"{name} must be a whole number of at least {COUNTS[name]}"
    with pytest.raises(ParameterError, match=words):
        Settings(**{name: value})


def test_none():
    """None stands for "find it yourself" where there is such a thing; a seed of None would not come again."""
    assert Settings(jobs=None, warmup=None).jobs is None
    for name in ("seed", "replications"):
        with pytest.raises(
            ParameterError, match=f"{name} must be a whole number.*got None.*leave {name} out"
        ):
            simulate("paper", 8, load=0.2, **{name: None})


def test_a_run_with_a_float_of_jobs():
    """`jobs=1e3` runs as `jobs=1000` does."""
    options = {"load": 0.2, "interpreted": True}
    assert simulate("paper", 4, jobs=2e2, **options).cost == simulate("paper", 4, jobs=200, **options).cost


# --- loads and policies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("load", ["0", "-1", "inf"])
@pytest.mark.parametrize("verb", ["bound", "meanfield", "simulate"])
def test_loads(verb, load):
    """A wrong load is told which loads there are, not what keys of documents allow."""
    done = malleable(verb, "paper", "-n", "8", "--load", load)
    assert done.status == 1
    error, hint = done.err.splitlines()
    assert error.startswith("error: load: must be")
    assert "list --json" not in hint
    assert "more than 0" in hint


def test_policies_as_text():
    """`compare` takes the text that its command takes, a list, and a single policy."""
    options = {"load": 0.2, "jobs": 100, "interpreted": True}
    text = compare("paper", 4, "wham, greedy:weight=cmu,equi", **options)
    assert [r.policy for r in text.results] == ["wham", "greedy:weight=cmu", "equi"]
    found = compare("paper", [4, 5], (name for name in ["wham", "equi"]), **options)
    assert [(r.cores, r.policy) for r in found.results] == [
        (4, "wham"),
        (4, "equi"),
        (5, "wham"),
        (5, "equi"),
    ]
    assert [r.policy for r in compare("paper", 4, Wham(), **options).results] == ["wham"]
    with pytest.raises(ParameterError, match=r"policies must be a list, got 5"):
        compare("paper", 4, 5, **options)
    with pytest.raises(ParameterError, match="nothing to compare"):
        compare("paper", 4, " , ", **options)


@pytest.mark.parametrize(
    ("text", "widths"), [("1/2/3", (1.0, 2.0, 3.0)), ("4", 4.0), ("1.5/2/8", (1.5, 2.0, 8.0))]
)
def test_options_that_are_lists(text, widths):
    """`widths=1/2/3` is a list, as the help and the docs say, and what a policy makes of it."""
    assert Policy.of(f"fixed-width:widths={text}") == FixedWidth(widths)
    done = malleable("allocate", "--help")
    assert "widths=4/2/8" in done.out
    rows = "id,class,remaining\na,class-1,1\nb,class-2,1\nc,class-3,1\n"
    done = malleable(
        "allocate",
        "paper",
        "-n",
        "64",
        "--jobs",
        "-",
        "--policy",
        f"fixed-width:widths={text}",
        "--json",
        stdin=rows,
    )
    found = [row["cores"] for row in json.loads(done.out)["allocation"]]
    assert found == list(np.broadcast_to(widths, 3))


def test_extras():
    """A hint how to install an extra fits an installation and a clone."""
    assert to_install("frames") == "pip install 'malleable[frames]' (in a clone: pip install -e '.[frames]')"


# --- workloads --------------------------------------------------------------------------------------------


def test_a_mark_at_the_start(tmp_path):
    """Some editors start a UTF-8 file with an invisible character; it is not part of the workload."""
    file = tmp_path / "paper.toml"
    file.write_text(PAPER, encoding="utf-8-sig")
    assert load_workload(file) == paper_workload()
    assert parse_workload("\ufeff" + PAPER) == paper_workload()


@pytest.mark.parametrize(
    "verb",
    [
        "bound - -n 8 --load .2",
        "meanfield - -n 64 --load .2 --starts 0",
        "simulate - -n 4 --load .2 --jobs 100 --interpreted",
        "compare - -n 4,5 --load .2 --jobs 100 --interpreted --policies wham,equi",
    ],
)
def test_a_workload_from_a_pipe(verb):
    """Every verb takes its workload from standard input, and answers as for the file."""
    piped = malleable(*verb.split(), "--json", stdin=PAPER)
    named = malleable(*verb.replace(" - ", " paper ").split(), "--json")
    assert (piped.status, piped.err) == (named.status, named.err) == (0, "")
    assert _steady(json.loads(piped.out)) == _steady(json.loads(named.out))


def _steady(document):
    """The document without what depends on the clock."""
    if isinstance(document, dict):
        skipped = {"events_per_second", "seconds"}
        return {key: _steady(value) for key, value in document.items() if key not in skipped}
    return [_steady(item) for item in document] if isinstance(document, list) else document


def test_allocate_from_pipes(tmp_path):
    """Either the workload or the jobs come from standard input; both at once is an error of ours."""
    file = tmp_path / "jobs.csv"
    file.write_text("id,class,remaining\na,class-1,1\n")
    arguments = ("allocate", "-", "-n", "8", "--jobs")
    done = malleable(*arguments, str(file), "--json", stdin="\ufeff" + PAPER)
    assert json.loads(done.out)["allocation"] == [{"id": "a", "class": "class-1", "cores": 8.0}]
    done = malleable(*arguments, "-", stdin=PAPER)
    assert done.status == 1
    assert "cannot both be read from standard input" in done.err


@pytest.mark.parametrize(
    ("stdin", "words"), [("", "the input is empty"), ("[[classes", "the input is not valid TOML")]
)
def test_wrong_workloads_from_a_pipe(stdin, words):
    """What is wrong with it is told as for a file."""
    done = malleable("bound", "-", "-n", "8", stdin=stdin)
    assert (done.status, done.out) == (1, "")
    assert words in done.err


def test_pipes_of_a_shell(tmp_path):
    """Standard input is UTF-8 whatever the locale, may be something else than text, and may be closed."""
    (tmp_path / "w.toml").write_text(PAPER.replace("class-1", "größe"), encoding="utf-8-sig")
    (tmp_path / "bad").write_bytes(b"\xff\xfe\x00")
    script = """
    export PYTHONIOENCODING=ascii:backslashreplace
    malleable bound - -n 8 --json < w.toml | grep -c gr
    malleable bound - -n 8 < bad
    malleable allocate paper -n 8 --jobs - < bad
    malleable allocate paper -n 8 --jobs - <&-
    """
    done = shell(script, folder=tmp_path)
    assert "Traceback" not in done.err
    assert done.out.startswith("1\n")
    assert [line for line in done.err.splitlines() if line.startswith("error")] == [
        "error: the input is not text",
        "error: the input is not a text file",
        "error: there is no standard input",
    ]


def test_a_workload_that_does_not_exist():
    """A name is still a name."""
    with pytest.raises(WorkloadError, match="did you mean 'paper'"):
        bound("papr", 8)
    with pytest.raises(MalleableError):
        load_workload("-")
