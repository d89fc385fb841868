"""What the command line says of wrong workloads, jobs, numbers and policies: one line and a hint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_checks import assert_one_line
from support.cli_files import CLASS
from support.shell import malleable

pytestmark = pytest.mark.usefixtures("with_jobs")

NOT_UTF8 = b"\xff\xfe\x00"


def table(cores_: list[float], speeds: list[float]) -> str:
    return CLASS.replace('"power", exponent = 0.5', f'"table", cores = {cores_}, speedup = {speeds}')


BAD_WORKLOADS = {
    "unknown kind": (CLASS.replace('"power"', '"powr"'), ["classes[0].speedup.kind", "did you mean 'power'"]),
    "unknown distribution": (CLASS.replace('"exponential"', '"exponental"'), ["did you mean 'exponential'"]),
    "unknown arrivals": (CLASS.replace('"poisson"', '"poison"'), ["classes[0].arrivals.kind", "poisson"]),
    "missing kind": (CLASS.replace('kind = "power", ', ""), ["classes[0].speedup", "missing key 'kind'"]),
    "missing parameter": (CLASS.replace(", rate = 1.0", ""), ["classes[0].arrivals", "missing key 'rate'"]),
    "missing key": (CLASS.replace("size", "# size"), ["classes[0]", "missing key 'size'"]),
    "unknown key": (CLASS + "holding_costs = 1.0\n", ["classes[0]", "did you mean 'holding_cost'"]),
    "unknown top key": ('title = "x"\n' + CLASS, ["unknown key 'title'"]),
    "negative rate": (CLASS.replace("rate = 1.0", "rate = -1.0"), ["classes[0].arrivals.rate", "-1.0"]),
    "zero rate": (CLASS.replace("rate = 1.0", "rate = 0.0"), ["classes[0].arrivals.rate"]),
    "NaN rate": (CLASS.replace("rate = 1.0", "rate = nan"), ["classes[0].arrivals.rate", "nan"]),
    "infinite rate": (CLASS.replace("rate = 1.0", "rate = inf"), ["classes[0].arrivals.rate", "inf"]),
    "rate as text": (CLASS.replace("rate = 1.0", 'rate = "1"'), ["classes[0].arrivals.rate"]),
    "negative mean": (CLASS.replace("mean = 1.0", "mean = -2.0"), ["classes[0].size.mean"]),
    "negative holding cost": (CLASS + "holding_cost = -1.0\n", ["classes[0].holding_cost"]),
    "exponent of 1": (CLASS.replace("0.5", "1.0"), ["classes[0].speedup.exponent", "less than 1"]),
    "s(1) is not 1": (table([1, 2], [2.0, 3.0]), ["classes[0].speedup.speedup[0]", "divide by 2"]),
    "table without one core": (table([2, 4], [2.0, 3.0]), ["classes[0].speedup.cores[0]", "one core"]),
    "falling table": (
        table([1, 4, 5], [1.0, 3.7, 2.1]),
        ["falls from 3.7 at k=4 to 2.1 at k=5", "hull = true"],
    ),
    "table of two lengths": (table([1, 2], [1.0]), ["cores has 2 entries but speedup has 1"]),
    "empty table": (table([], []), ["at least 1"]),
    "two classes of one name": (CLASS + CLASS, ["a second class is called 'etl'", "classes[1].name"]),
    "class that is no table": ("classes = [1]\n", ["classes[0]"]),
    "classes that are no list": ("classes = 1\n", ["at least one class"]),
    "no classes": ('name = "x"\n', ["at least one class"]),
    "empty file": ("", ["wrong.toml is empty"]),
    "comments only": ("# nothing\n", ["wrong.toml is empty"]),
    "not TOML": ("id,class\n1,2\n", ["not valid TOML"]),
    "not text": (NOT_UTF8, ["not a text file"]),
}


@pytest.mark.parametrize(("text", "words"), BAD_WORKLOADS.values(), ids=BAD_WORKLOADS.keys())
@pytest.mark.parametrize("verb", ["bound", "meanfield"])
def test_bad_workload(verb, text, words):
    """A bad workload file gets one line that names the file and the place."""
    Path("wrong.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_one_line(malleable(verb, "wrong.toml", "--cores", "8"), "wrong.toml", *words)


@pytest.mark.parametrize(
    ("source", "words"),
    [("papr", ["'papr'", "did you mean 'paper'"]), ("absent.toml", ["absent.toml"]), (".", ["'.'"])],
)
def test_missing_workload(source, words):
    assert_one_line(malleable("bound", source, "--cores", "8"), *words)


BAD_JOBS = {
    "unknown class": ("id,class,remaining\na,class-9,1\n", ["job 'a'", "'class-9'", "did you mean"]),
    "negative remaining": ("id,class,remaining\na,class-1,-1\n", ["job 'a'", "'remaining'", "-1"]),
    "NaN remaining": ("id,class,remaining\na,class-1,nan\n", ["job 'a'", "'remaining'", "nan"]),
    "infinite remaining": ("id,class,remaining\na,class-1,inf\n", ["job 'a'", "'remaining'", "inf"]),
    "remaining as text": ("id,class,remaining\na,class-1,long\n", ["job 'a'", "'long'"]),
    "no remaining": ("id,class,remaining\na,class-1,\n", ["row 1", "'remaining'"]),
    "negative weight": ("id,class,remaining,weight\na,class-1,1,-1\n", ["job 'a'", "'weight'"]),
    "NaN age": ("id,class,remaining,age\na,class-1,1,nan\n", ["job 'a'", "'age'"]),
    "duplicate ids": ("id,class,remaining\na,class-1,1\na,class-2,1\n", ["'a'", "twice"]),
    "unknown column": ("id,class,remaining,speed\na,class-1,1,2\n", ["'speed'"]),
    "missing column": ("id,class\na,class-1\n", ["'remaining'"]),
    "too many fields": ("id,class,remaining\na,class-1,1,2,3\n", ["line 2"]),
    "one column twice": ("id,class,id,remaining\na,class-1,b,1\n", ["twice"]),
    "bad JSON": ("[{", ["not valid JSON"]),
    "JSON of another shape": ('{"a": 1}', ["list of jobs"]),
    "JSON rows that are no tables": ("[1, 2]", ["row 1"]),
    "JSON with NaN": ('[{"id": "a", "class": "class-1", "remaining": NaN}]', ["job 'a'", "nan"]),
    "JSON with a boolean": ('[{"id": "a", "class": "class-1", "remaining": true}]', ["job 'a'", "True"]),
}


@pytest.mark.parametrize(("text", "words"), BAD_JOBS.values(), ids=BAD_JOBS.keys())
@pytest.mark.parametrize("source", ["wrong.csv", "-"])
def test_bad_jobs(source, text, words):
    """Bad jobs get one line that names the job or the row, from a file and from a pipe alike."""
    Path("wrong.csv").write_text(text)
    done = malleable("allocate", "paper", "--cores", "8", "--jobs", source, stdin=text)
    assert_one_line(done, *words)


def test_missing_job_file():
    assert_one_line(malleable("allocate", "paper", "-n", "8", "--jobs", "absent.csv"), "'absent.csv'")


def test_job_file_that_is_not_text():
    Path("wrong.csv").write_bytes(NOT_UTF8)
    assert_one_line(malleable("allocate", "paper", "-n", "8", "--jobs", "wrong.csv"), "not a text file")


@pytest.mark.parametrize("cores_", ["0", "0.5", "-3", "nan", "inf", "many", ""])
@pytest.mark.parametrize("verb", ["bound paper", "allocate paper --jobs jobs.csv", "meanfield paper"])
def test_bad_cores(verb, cores_):
    """Cores below 1, and cores that are no number, are errors of ours, not of usage."""
    assert_one_line(malleable(*verb.split(), f"--cores={cores_}"), "cores must be")


@pytest.mark.parametrize("load", ["0", "-0.5", "nan", "inf", "half"])
def test_bad_load(load):
    assert_one_line(malleable("bound", "paper", "--cores", "8", f"--load={load}"), "load")


@pytest.mark.parametrize("arguments", [["--cores", "1"], ["--cores", "8", "--load", "1"]])
@pytest.mark.parametrize("verb", ["bound", "meanfield"])
def test_too_much_load_says_which_n_would_do(verb, arguments):
    """Load ≥ 1 names the number of cores that would keep up."""
    needed = {"1": "2 cores", "8": "9 cores"}[arguments[1]]
    assert_one_line(malleable(verb, "paper", *arguments), "the load is", f"at least {needed}")


BAD_POLICIES = {
    "whan": ["did you mean 'wham'"],
    "fw-cam:beta=2": ["beta", "less than 1"],
    "fw-cam:beta=0.6": ["beta", "0.75"],
    "fw-cam:gamma=1": ["'gamma'", "beta"],
    "fw-cam:beta": ["'beta'", "key=value"],
    "greedy:weight=size": ["weight"],
    "wham:fast=true": ["'fast'"],
    "a:b:c": ["'a:b:c'"],
    "absent.py:Mine": ["absent.py"],
    "mine.py:Absent": ["'Absent'", "did you mean"],
    "mine.py:number": ["not a policy"],
}


@pytest.mark.parametrize(("policy", "words"), BAD_POLICIES.items(), ids=BAD_POLICIES.keys())
def test_bad_policy(policy, words):
    Path("mine.py").write_text("number = 1\ndef absence(jobs, cores): ...\n")
    done = malleable("allocate", "paper", "-n", "8", "--jobs", "jobs.csv", "--policy", policy)
    assert_one_line(done, *words)


@pytest.mark.parametrize("policy", ["fw-cam", "greedy:weight=c/x"])
def test_meanfield_of_other_policies(policy):
    """Policies that look at more than class counts have no mean field, and say so."""
    assert_one_line(malleable("meanfield", "paper", "-n", "64", "--load", "0.25", "--policy", policy))


def test_meanfield_needs_phases():
    Path("lognormal.toml").write_text(CLASS.replace('"exponential", mean', '"lognormal", sigma = 1.0, mean'))
    assert_one_line(malleable("meanfield", "lognormal.toml", "-n", "8"), "class 'etl'", "lognormal")


def test_unknown_family():
    assert_one_line(malleable("list", "policy"), "'policy'", "policies")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bond"],
        ["bound"],
        ["bound", "paper"],
        ["bound", "paper", "--core", "8", "--quick"],
        ["allocate", "paper", "--cores", "8"],
        ["meanfield", "paper", "--cores", "8", "--starts", "-1"],
        ["meanfield", "paper", "--cores", "8", "--seed", "x"],
    ],
    ids=" ".join,
)
def test_usage_errors_exit_with_2(arguments):
    assert malleable(*arguments).status == 2


def test_warnings_go_to_stderr():
    """A class that the proofs do not cover is named on stderr; stdout stays one JSON document."""
    Path("heavy.toml").write_text(CLASS.replace('"exponential", mean', '"pareto", shape = 2.5, mean'))
    done = malleable("bound", "heavy.toml", "-n", "8", "--json")
    assert done.status == 0
    assert json.loads(done.out)["bound"] > 0.0
    assert done.err.startswith("warning: class 'etl': ")
    assert len(done.err.splitlines()) == 1
