"""The command line, used as people use it: what it prints, in JSON and in tables, however jobs are given."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import malleable as package
from malleable import catalog
from support.cli_checks import REFERENCE, as_json
from support.cli_files import CSV
from support.json_keys import keys
from support.shell import malleable

pytestmark = pytest.mark.usefixtures("with_jobs")


WHOLE = """
[[classes]]
arrivals = { kind = "poisson", rate = 0.05 }
size = { kind = "exponential", mean = 2.0 }
speedup = { kind = "amdahl", sequential = 0.02 }
widths = "whole"
"""


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


def test_bound_of_whole_widths():
    """Where widths are restricted, `bound` says what n + 1 cores save, and not that one more core saves 0."""
    Path("whole.toml").write_text(WHOLE, encoding="utf-8")
    text = malleable("bound", "whole.toml", "--cores", "128").out
    assert "one more core" not in text
    saved = 0.05 * 2.0 * 0.98 * (1 / 128 - 1 / 129)
    assert f"with 129 cores, saved per unit of time {saved:.6g}" in " ".join(text.split())
    document = as_json("bound", "whole.toml", "--cores", "128")
    assert document["next_core_saves"] == pytest.approx(saved, rel=1e-9)


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


def test_bound_prints_the_plan_of_fw_cam():
    """Slots, widths and exact waits; the cost is MODEL.md's, and other policies have no plan."""
    plan = as_json("bound", "paper", "-n", "64", "--load", "0.25", "--plan", "fw-cam")["plan"]
    assert [pool["slots"] for pool in plan["pools"]] == [2, 6, 3]
    assert plan["cost"] == pytest.approx(0.33994747, rel=1e-7)
    # Class 1 is M/M/2: response .383632 less the service .2/1.6239470^0.3.
    assert plan["pools"][0]["wait"] == pytest.approx(0.383632 - 0.2 / 1.6239470**0.3, abs=1e-6)
    told = malleable("bound", "paper", "-n", "64", "--load", "0.25", "--plan", "fw-cam").out
    assert "expected wait" in told
    assert "exact cost per job 0.33994747" in told
    refused = malleable("bound", "paper", "-n", "64", "--plan", "wham")
    assert (refused.status, "has no fixed slots" in refused.err) == (1, True)


def test_meanfield_json():
    """`meanfield` has the keys of the design, and those that say what it is about and whether to trust it."""
    document = as_json("meanfield", "paper", "--cores", "64", "--load", "0.25", "--starts", "3")
    designed = {"fixed_point", "cost", "stable", "eigenvalues", "refined", "attractor"}
    assert set(document) == designed | {"first_order", "workload", "policy", "cores", "load", "price"}
    assert [set(row) for row in document["fixed_point"]] == [{"name", "jobs", "cores"}] * 3
    assert set(document["refined"]) == {"coefficient", "cost", "applies", "reason", "overload"}
    measured = {"starts", "converged", "worst_distance", "left_domain"}
    assert set(document["attractor"]) == measured | {
        *("proved", "reason", "monotone", "lower", "upper", "within", "meet")
    }
    assert document["attractor"]["proved"] is True
    assert document["cost"] == pytest.approx(0.1578484983857, abs=1e-10)
    assert document["refined"]["coefficient"] == pytest.approx(1.425163, abs=1e-5)
    assert document["eigenvalues"] == pytest.approx([-43.476, -9.400, -8.118, -2.897], abs=1e-3)
    assert document["stable"] is True
    assert (document["attractor"]["starts"], document["attractor"]["converged"]) == (3, 3)


@pytest.mark.parametrize("family", ["policies", "speedups", "distributions", "arrivals"])
def test_list_json(family):
    """`list` gives a list of things with a name, a summary and parameters; policies say what they need."""
    rows = as_json("list", family)
    assert rows
    for row in rows:
        more = {"monotone", "needs"} if family == "policies" else set()
        assert set(row) == {"name", "summary", "parameters"} | more
        assert row.get("needs") or not more
        assert row["summary"]
        for parameter in row["parameters"]:
            assert {"name", "allowed"} <= set(parameter) <= {"name", "allowed", "or", "default"}


def test_list_everything_names_the_family():
    rows = as_json("list")
    assert {"policies", "speedups", "distributions", "arrivals", "workloads"} <= {r["family"] for r in rows}
    (paper,) = (row for row in rows if row["family"] == "workloads")
    assert as_json("list", "workloads") == [
        {"name": "paper", "summary": paper["summary"], "classes": ["class-1", "class-2", "class-3"]}
    ]


@pytest.mark.parametrize("family", ["backends"])
def test_list_of_families_to_come_is_empty(family):
    assert as_json("list", family) == []
    assert malleable("list", family).out == f"there are no {family} yet\n"


@pytest.mark.parametrize(
    "command",
    [
        "bound paper -n 64 --load 0.25 --plan fw-cam",
        "allocate paper -n 16 --jobs jobs.csv",
        "meanfield paper -n 64 --starts 0",
        "list",
    ],
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
