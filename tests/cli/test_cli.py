"""The command line, used as people use it: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import malleable as package
from malleable import catalog
from support.json_keys import keys
from support.shell import environment, malleable, shell

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
CSV = "id,class,remaining\na,class-1,0.1\nb,class-1,0.3\nc,class-2,0.5\nd,class-3,0.2\ne,class-3,0.4\n"
CLASS = """\
[[classes]]
name = "etl"
arrivals = { kind = "poisson", rate = 1.0 }
size = { kind = "exponential", mean = 1.0 }
speedup = { kind = "power", exponent = 0.5 }
"""
NOT_UTF8 = b"\xff\xfe\x00"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own, with a file of jobs."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(CSV)


def as_json(*arguments: str, stdin: str = ""):
    """The JSON document of a command that must succeed, with nothing on stderr."""
    done = malleable(*arguments, "--json", stdin=stdin)
    assert (done.status, done.err) == (0, "")
    return json.loads(done.out, parse_constant=pytest.fail)


# --- what the JSON holds ----------------------------------------------------------------------------------


def test_bound_json():
    """`bound` has the keys of the design, and four more that the reference lists."""
    document = as_json("bound", "paper", "--cores", "64", "--load", "0.25")
    designed = {"cores", "load", "bound", "bound_capped", "price", "effective_load", "classes"}
    assert set(document) == designed | {"workload", "bound_integer", "core_value", "kkt_residual"}
    assert [set(row) for row in document["classes"]] == [{"name", "cores", "response_time", "jobs"}] * 3
    assert [row["name"] for row in document["classes"]] == ["class-1", "class-2", "class-3"]
    assert document["bound"] == pytest.approx(0.1578484983857, abs=1e-12)
    assert (document["cores"], document["load"]) == (64.0, pytest.approx(0.25))


def test_bound_without_load_uses_the_rates_as_written():
    document = as_json("bound", "paper", "--cores", "64")
    assert document["load"] == pytest.approx(28 / 15 / 64)


def test_allocate_json():
    """`allocate` has exactly the keys of the design, rows in the order of the jobs."""
    document = as_json("allocate", "paper", "--cores", "16", "--jobs", "jobs.csv", "--policy", "wham")
    assert set(document) == {"policy", "cores", "price", "allocation"}
    assert [set(row) for row in document["allocation"]] == [{"id", "class", "cores"}] * 5
    assert [row["id"] for row in document["allocation"]] == list("abcde")
    assert document["policy"] == "wham"
    assert document["price"] > 0.0
    assert math.fsum(row["cores"] for row in document["allocation"]) == pytest.approx(16.0)


def test_meanfield_json():
    """`meanfield` has the keys of the design, and those that say what it is about and whether to trust it."""
    document = as_json("meanfield", "paper", "--cores", "64", "--load", "0.25", "--starts", "3")
    designed = {"fixed_point", "cost", "stable", "eigenvalues", "refined", "attractor"}
    assert set(document) == designed | {"workload", "policy", "cores", "load", "price"}
    assert [set(row) for row in document["fixed_point"]] == [{"name", "jobs", "cores"}] * 3
    assert set(document["refined"]) == {"coefficient", "cost", "applies", "reason", "overload"}
    assert set(document["attractor"]) == {"starts", "converged", "worst_distance", "left_domain"}
    assert document["cost"] == pytest.approx(0.1578484983857, abs=1e-10)
    assert document["refined"]["coefficient"] == pytest.approx(1.425163, abs=1e-5)
    assert document["eigenvalues"] == pytest.approx([-43.476, -9.400, -8.118, -2.897], abs=1e-3)
    assert document["stable"] is True
    assert (document["attractor"]["starts"], document["attractor"]["converged"]) == (3, 3)


@pytest.mark.parametrize("family", ["policies", "speedups", "distributions", "arrivals"])
def test_list_json(family):
    """`list` gives a list of things with a name, a summary and parameters."""
    rows = as_json("list", family)
    assert rows
    for row in rows:
        assert set(row) == {"name", "summary", "parameters"}
        assert row["summary"]
        for parameter in row["parameters"]:
            assert {"name", "allowed"} <= set(parameter) <= {"name", "allowed", "or", "default"}


def test_list_everything_names_the_family():
    rows = as_json("list")
    assert {"policies", "speedups", "distributions", "arrivals", "workloads"} <= {r["family"] for r in rows}
    assert as_json("list", "workloads") == [
        {"name": "paper", "summary": rows[-1]["summary"], "classes": ["class-1", "class-2", "class-3"]}
    ]


@pytest.mark.parametrize("family", ["traces", "backends"])
def test_list_of_families_to_come_is_empty(family):
    assert as_json("list", family) == []
    assert malleable("list", family).out == f"there are no {family} yet\n"


@pytest.mark.parametrize(
    "command",
    ["bound paper -n 64", "allocate paper -n 16 --jobs jobs.csv", "meanfield paper -n 64 --starts 0", "list"],
)
def test_every_json_key_is_documented(command):
    """docs/reference/json.md has every key that a command writes."""
    verb = command.partition(" ")[0]
    (section,) = [
        s for s in REFERENCE.read_text("utf-8").split("\n## ") if s.startswith(f"malleable {verb} ")
    ]
    for key in keys(as_json(*command.split())):
        assert any(f"{before}{key}`" in section for before in "`."), key


def test_json_has_no_infinities():
    """What JSON cannot write is null: a price of no market."""
    document = as_json("allocate", "paper", "--cores", "2", "--jobs", "jobs.csv")
    assert document["price"] is None
    assert sorted(row["cores"] for row in document["allocation"]) == [0.0, 0.0, 0.0, 1.0, 1.0]


# --- tables for people ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("bound paper -n 64 --load 0.25", ["lower bound V*", "0.1578484984", "class-2", "25.2311"]),
        ("allocate paper -n 16 --jobs jobs.csv", ["class-3", "3.53559", "price of a core"]),
        ("allocate paper -n 2 --jobs jobs.csv", ["waits"]),
        ("meanfield paper -n 64 --load 0.25 --starts 2", ["1.425163", "-43.476", "2 of 2", "yes"]),
        ("list", ["wham", "fw-cam", "amdahl", "hyperexponential", "poisson", "paper"]),
    ],
)
def test_tables(command, words):
    """Without --json there is a table with the numbers, on stdout only, within 80 columns."""
    done = malleable(*command.split())
    assert (done.status, done.err) == (0, "")
    for word in words:
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_many_jobs_are_shown_by_class():
    rows = "".join(f"{i},class-{i % 3 + 1},1.0\n" for i in range(120))
    done = malleable("allocate", "paper", "-n", "64", "--jobs", "-", stdin=f"id,class,remaining\n{rows}")
    assert done.out.splitlines()[0].rstrip() == "wham: 120 jobs on 64 cores"
    assert len(done.out.splitlines()) < 12


# --- ways to give jobs ------------------------------------------------------------------------------------


def cores(*arguments: str, stdin: str = "") -> list[float]:
    document = as_json("allocate", "paper", "-n", "16", *arguments, stdin=stdin)
    return [row["cores"] for row in document["allocation"]]


def test_stdin_csv_and_json_are_the_same():
    """A file, a pipe, CSV, JSON rows and JSON under `jobs` all give the same allocation."""
    header, *lines = [line.split(",") for line in CSV.splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    numbers = [{**row, "remaining": float(row["remaining"])} for row in rows]
    expected = cores("--jobs", "jobs.csv")
    assert cores("--jobs", "-", stdin=CSV) == expected
    assert cores("--jobs", "-", stdin="\ufeff" + CSV.replace(",", ", ").replace("\n", "\r\n")) == expected
    assert cores("--jobs", "-", stdin=json.dumps(numbers)) == expected
    assert cores("--jobs", "-", stdin=json.dumps({"jobs": rows})) == expected


def test_integer_gives_whole_cores():
    whole = cores("--jobs", "jobs.csv", "--integer")
    assert sum(whole) == 16.0
    assert all(k == int(k) for k in whole)


@pytest.mark.parametrize("policy", [catalog.display("policies", kind) for kind in catalog.kinds("policies")])
@pytest.mark.parametrize("integer", [False, True])
def test_every_policy_allocates(policy, integer):
    """Every policy runs on the paper workload with its defaults; no more cores than there are."""
    Path("paper.toml").write_text(package.paper_workload(64).to_toml())
    flag = ["--integer"] * integer
    document = as_json("allocate", "paper.toml", "-n", "64", "--jobs", "jobs.csv", "--policy", policy, *flag)
    given = [row["cores"] for row in document["allocation"]]
    assert 0.0 < math.fsum(given) <= 64.0 + 1e-9


@pytest.mark.parametrize("policy", ["WHAM", "greedy:weight=cmu", "greedy:weight=c/x", "fw_cam:beta=0.9"])
def test_policy_spellings(policy):
    Path("paper.toml").write_text(package.paper_workload(256).to_toml())
    document = as_json("allocate", "paper.toml", "-n", "256", "--jobs", "jobs.csv", "--policy", policy)
    assert document["policy"] == policy


def test_weights_count():
    """A job with a larger weight gets more."""
    weighted = "id,class,remaining,weight\na,class-1,1,\nb,class-1,1,5\n"
    light, heavy = cores("--jobs", "-", stdin=weighted)
    assert heavy > light


# --- errors -----------------------------------------------------------------------------------------------


def assert_one_line(done, *words: str) -> None:
    """One `error:` line, at most one `hint:` line, exit 1, nothing on stdout."""
    lines = done.err.splitlines()
    assert done.status == 1, done
    assert done.out == ""
    assert lines[0].startswith("error: "), done.err
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: ")), done.err
    for word in words:
        assert word in done.err


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
    "unknown column": ("id,class,remaining,size\na,class-1,1,2\n", ["'size'"]),
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
    Path("mine.py").write_text("number = 1\nabsence = 2\n")
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


# --- as a process -----------------------------------------------------------------------------------------


def test_version():
    assert malleable("--version").out == f"malleable {package.__version__}\n"


@pytest.mark.parametrize("verb", ["", "bound ", "allocate ", "meanfield ", "list "])
def test_help_in_both_spellings(verb):
    short, long = (malleable(*f"{verb}{flag}".split()) for flag in ("-h", "--help"))
    assert short == long
    assert (short.status, short.err) == (0, "")
    assert "Usage: malleable" in short.out


HEAVY = ("numba", "matplotlib", "numpy", "scipy", "malleable.model")
HELP = """\
import sys
sys.argv = ["malleable", {arguments}]
from malleable.cli import main
try:
    main()
finally:
    print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", ["'--help'", "'bound', '--help'", "'--version'"])
def test_help_imports_nothing_heavy(arguments):
    """`--help` answers at once because nothing heavy is imported: no NumPy, no SciPy, no Numba."""
    code = HELP.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"


def test_import_is_light():
    code = f"import sys, malleable; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


def test_the_installed_command_works():
    """The entry point, in a process of its own: stdin, stdout, stderr and status as in a shell."""
    good = shell("malleable allocate paper -n 16 --jobs - --json < jobs.csv")
    assert (good.status, good.err) == (0, "")
    assert len(json.loads(good.out)["allocation"]) == 5
    assert_one_line(shell("malleable bound paper --cores none"), "cores must be a number")


@pytest.mark.parametrize(
    "command", ["list", "list --json", "bound paper -n 64", "meanfield paper -n 64 --starts 1"]
)
def test_closed_pipe_is_no_error(command):
    """`malleable … | head` ends quietly when the reader has seen enough."""
    done = shell(f"malleable {command} | (exec 0<&-; sleep 0.1); exit ${{PIPESTATUS[0]}}")
    assert "Traceback" not in done.err
    assert "BrokenPipe" not in done.err
    assert (done.status, done.err) == (0, "")


def test_colours_only_on_request():
    """Without a terminal nothing is coloured."""
    assert "\x1b" not in shell("malleable list").out
    assert "NO_COLOR" in environment()
