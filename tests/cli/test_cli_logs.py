"""`malleable trace`, `replay` and `workload`: documents, tables, files; and a broker's history as a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from malleable.errors import TraceError
from malleable.model import load_workload, paper_workload
from malleable.sources import stream
from malleable.traces import read_trace
from malleable.traces.describing import plain_text, trace_of_stays
from support.json_keys import keys
from support.log_samples import SACCT, SAMPLES
from support.shell import malleable

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
LOG = "arrival,duration,cores,wait,user,class\n" + "".join(
    f"{7 * i},{20 + i % 9},{1 + i % 4},{i % 3},{('ann', 'bob')[i % 2]},{'xy'[i % 2]}\n" for i in range(40)
)
NAMES = {"ann", "bob", "x", "y", "wham", "easy"}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Every test in a folder of its own, with two logs."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    Path("slurm.txt").write_text(SACCT)


def as_json(*arguments: str, stdin: str = ""):
    done = malleable(*arguments, "--json", stdin=stdin)
    assert (done.status, done.err) == (0, "")
    return json.loads(done.out, parse_constant=pytest.fail)


SHAREFUL = ("replay", "log.csv", "-n", "4", "--policies", "wham,easy", "--shares", "0,100", "--resample", "2")


@pytest.mark.parametrize(
    "arguments", [("trace", "log.csv"), SHAREFUL, ("workload", "log.csv", "-n", "8", "--jobs", "2000")]
)
def test_every_json_key_is_documented(arguments):
    """docs/reference/json.md has every key that the commands write, or says where it comes from."""
    text = REFERENCE.read_text("utf-8").split("\n## ")
    (section,) = [s for s in text if s.startswith(f"malleable {arguments[0]} ")]
    (simulated,) = [s for s in text if s.startswith("malleable simulate ")]
    (compared,) = [s for s in text if s.startswith("malleable compare ")]
    document = as_json(*arguments)
    # What names columns of the log, packages and kinds is no key.
    document.pop("workload", None)
    if "laws" in document:
        document["laws"] = list(document["laws"].values())
    for result in document.get("results", ()):
        del result["versions"]
    for key in keys(document) - NAMES:
        shown = section + simulated + compared if arguments[0] == "replay" else section
        assert any(f"{before}{key}`" in shown for before in "`."), key


def test_the_keys_of_the_design():
    """Those that others rely on."""
    trace = as_json("trace", "slurm.txt")
    assert {"jobs", "span", "load", "classes", "users", "dropped"} <= set(trace)
    assert {"reason", "rows"} == set(trace["dropped"][0])
    document = as_json(*SHAREFUL)
    assert {"jobs", "cores", "bound", "results", "assumptions"} <= set(document)
    for result in document["results"]:
        names = ("policy", "cost", "gap", "wait", "response", "slowdown", "utilisation", "resizes", "blame",
                 "classes", "users")  # fmt: skip
        assert set(names) <= set(result)
        assert {"mean", "p50", "p95", "p99"} == set(result["slowdown"])
        blame = result["blame"]
        if blame is not None:
            lost = result["cost"]["mean"] - blame["bound"]
            assert blame["jobs"] + blame["idle"] == pytest.approx(lost)
            assert blame["bound"] <= document["bound"] * (1.0 + 1e-12)


def test_tables_for_people():
    """Costs beside the least possible, times, the certificate, blame, shares and assumptions."""
    done = malleable(*SHAREFUL)
    assert (done.status, done.err) == (0, "")
    for word in ("least possible", "±", "bounded slowdowns", "Even knowing the future", "Of what",
                 "One more core", "Cost by share", "Assumed:", "the log itself"):  # fmt: skip
        assert word in done.out
    shown = malleable("trace", "slurm.txt").out
    for word in (
        "2 jobs",
        "Laws",
        "By class",
        "Users",
        "Arrivals by hour",
        "dropped: 1 row: a step of a job",
    ):
        assert word in shown


def test_files_are_written():
    """--out, --plot and a workload file; they are read back."""
    done = malleable("replay", "log.csv", "-n", "4", "--policies", "wham,easy", "--out", "runs", "--no-bound")
    assert done.status == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "comparison.csv", "comparison.json", "comparison.npz"
    ]  # fmt: skip
    assert malleable("trace", "log.csv", "--plot", "log.svg").status == 0
    assert Path("log.svg").read_text().startswith("<?xml")
    done = malleable("workload", "log.csv", "-n", "8", "--jobs", "2000", "--out", "like.toml")
    assert "ratio" in done.out
    assert load_workload("like.toml").class_names == ("x", "y")


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind != "plain"])
def test_a_log_written_plainly_says_the_same(kind):
    """`trace --out` writes any log as a plain table, which is read as the same jobs."""
    Path("any").write_text(SAMPLES[kind])
    assert malleable("trace", "any", "--out", "plain.csv").status == 0
    first, again = read_trace("any"), read_trace("plain.csv")
    assert again.format == "plain"
    for name in ("submit", "cores", "duration", "wait", "estimate", "epoch"):
        one, other = getattr(first, name), getattr(again, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert other == pytest.approx(one, nan_ok=True), name
    for name in ("user", "application", "queue"):
        one, other = first.labels(name), again.labels(name)
        assert (None if one is None else one.words()) == (None if other is None else other.words())


def test_a_study_stands_for_its_log():
    """Every verb takes a study file in place of a log, and options change it."""
    Path("study.toml").write_text('log = "log.csv"\ncores = 6\nclasses = "user"\nmalleable = 0.5\n')
    document = as_json("replay", "study.toml", "--policies", "wham")
    assert document["cores"] == 6.0
    assert any("20 malleable" in one for one in document["assumptions"])
    changed = as_json("replay", "study.toml", "--policies", "wham", "--malleable", "100", "-n", "5")
    assert changed["cores"] == 5.0
    assert any("every job can be resized" in one for one in changed["assumptions"])
    assert as_json("trace", "study.toml")["jobs"] == 40


def test_standard_input():
    """A dash reads the pipe."""
    with pytest.MonkeyPatch.context() as patch:
        import io
        import sys

        piped = io.TextIOWrapper(io.BytesIO(LOG.encode()))
        patch.setattr("malleable.traces.base.source.sys", type("sys", (), {"stdin": piped}))
        assert read_trace("-").core_seconds.sum() == read_trace("log.csv").core_seconds.sum()
        assert sys.stdin is not piped


def test_jobs_that_were_played_are_a_log():
    """`play --log` saves what the policies saw: the jobs that the simulator draws with that seed."""
    done = malleable("play", "paper", "--cores", "8", "--load", "0.3", "--jobs", "40", "--speed", "60",
                     "--log", "played.csv")  # fmt: skip
    assert done.status == 0
    drawn = stream(paper_workload(8, 0.3), 0).take()
    trace = read_trace("played.csv")
    assert trace.size.tolist() == drawn.sizes[:40].tolist()
    assert trace.submit == pytest.approx(drawn.times[:40] - drawn.times[0])
    assert trace.application.words() == [f"class-{i + 1}" for i in drawn.classes[:40]]


def test_the_log_of_a_broker():
    """Arrivals, first cores, ends and mean widths of its jobs; what cannot be used is counted."""
    document = {
        "id": ["7", "8", "9"], "job_class": ["cfd", "cfd", "etl"], "weight": [2.0, 1.0, 1.0],
        "came": [5.0, 6.0, 7.0], "began": [10.0, 6.0, None], "went": [30.0, None, 8.0],
        "core_seconds": [60.0, 3.0, 0.0],
    }  # fmt: skip
    trace = trace_of_stays(document)
    assert (trace.wait.tolist(), trace.duration.tolist(), trace.cores.tolist()) == ([5.0], [20.0], [3.0])
    assert (trace.weight.tolist(), trace.epoch) == ([2.0], 5.0)
    assert {(one.reason, one.rows) for one in trace.dropped} == {("not over yet", 1), ("never ran", 1)}
    Path("day.csv").write_text(plain_text(trace))
    assert read_trace("day.csv").core_seconds.tolist() == [60.0]
    with pytest.raises(TraceError, match="remembers no jobs"):
        trace_of_stays({name: [] for name in document})


@pytest.mark.parametrize(
    "command", [("replay",), ("plan", "--target", "cost < 3")], ids=lambda words: words[0]
)
def test_no_cores_are_not_taken_for_unknown_ones(command):
    """`--cores 0` is refused as such, and not answered with the machine of the log or a question for one."""
    Path("one.csv").write_text("submit,duration,cores\n0,60,2\n9,60,1\n")
    verb, *options = command
    done = malleable(verb, "one.csv", "--cores", "0", *options)
    assert done.status == 1
    assert "cores must be at least 1" in done.err
