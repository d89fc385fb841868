"""Results: what they say, that they survive the disk, and what they refuse."""

from __future__ import annotations

import dataclasses
import json
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from malleable.errors import MalleableError
from malleable.model import JobClass, Workload
from malleable.results import Comparison, Difference, Result, ResultError, Status, merge, summarise
from malleable.statistics import Estimate
from malleable.theory.relaxed import bound
from support.synthetic import ar1, records, single_server, workload

MODEL = workload(mean_sizes=[0.7])
KEYS = [
    *("policy", "cores", "load", "seed", "jobs", "warmup", "cost", "bound", "gap", "utilisation", "overload"),
    *("classes", "events_per_second", "stable"),
]


def queue(seed=1, jobs=40_000, load=0.7, **options):
    """M/M/1 as a result on one core; its policy is FCFS."""
    model = workload(mean_sizes=[load])
    run = single_server(np.random.default_rng(seed), jobs, load, histograms=True)
    given = {"workload": model, "cores": 1, "policy": "fcfs", "seed": seed, "jobs": jobs}
    return summarise([run], **{**given, "events": 2 * jobs, "seconds": 0.5, **options})


@pytest.fixture(scope="module")
def result():
    return queue()


def test_a_queue_is_summarised(result):
    """Every number of an M/M/1 run agrees with theory; the bound is below it, and provenance is there."""
    exact = 0.7 / 0.3
    assert result.cost.low < exact < result.cost.high
    assert result.gap == pytest.approx(result.cost.mean / bound(MODEL, 1).bound_capped - 1.0)
    assert result.gap > 0.0
    assert result.load == pytest.approx(0.7)
    assert result.utilisation == pytest.approx(0.7, rel=0.05)
    (only,) = result.classes
    quantiles = exact * -np.log(1.0 - np.array([0.5, 0.95, 0.99]))
    np.testing.assert_allclose(only.response, quantiles, rtol=0.15)
    assert only.response_time == result.cost
    assert only.present == pytest.approx(exact, rel=0.1)
    assert only.width == pytest.approx((1.0, 1.0, 1.0), rel=2.0**-6)
    assert only.slowdown.p50 > 1.0
    assert only.mean_slowdown > only.slowdown.p50
    assert abs(only.little) < 1e-3
    assert only.jobs == pytest.approx(result.jobs - result.warmup, rel=0.01)
    assert result.controls.used
    assert result.events_per_second == 160_000
    assert (result.stable, result.status, result.notes) == (True, "complete", ())
    assert {"python", "numpy", "malleable"} <= set(result.versions)


def test_the_document_has_the_promised_keys(result):
    """`to_dict` begins with the keys of `malleable simulate`, nested as promised, and is plain JSON."""
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert list(document)[: len(KEYS)] == KEYS
    assert list(document["cost"]) == ["mean", "low", "high"]
    row = document["classes"][0]
    assert list(row)[:6] == ["name", "response_time", "p50", "p95", "p99", "jobs"]
    assert list(row["response_time"]) == ["mean", "low", "high"]


def test_text(result):
    """One line says policy, cores, load, cost with interval, and the distance to the bound."""
    text = str(result)
    assert text.startswith("fcfs on 1 cores at load 0.7: cost ")
    assert "±" in text
    assert "above the bound" in text
    assert "[" not in text


def test_jobs_over_time(result):
    """Records give the jobs present at the end of each stretch; without records there is a clear error."""
    times, present = result.jobs_over_time()
    assert len(times) == len(present) == 799 + 1
    assert np.all(np.diff(times) > 0.0)
    with pytest.raises(ResultError, match="without keeping"):
        queue(jobs=2000, keep_records=False).jobs_over_time()


@pytest.mark.parametrize("load", [1.0, 1.3])
def test_overload_is_labelled(load):
    """At load 1 or more there is no bound, and neither the text nor the document shows a plain number."""
    found = queue(jobs=5000, load=load)
    assert (found.bound, found.gap, found.stable) == (None, None, False)
    assert found.status == Status.UNSTABLE
    assert "load is" in found.notes[0]
    assert "finite horizon (unstable)" in str(found)


def test_growth_is_labelled():
    """A policy that loses stability below load 1 is found out by its growing queue."""
    model = workload(mean_sizes=[0.5])
    run = single_server(np.random.default_rng(3), 20_000, 1.2)
    found = summarise([run], workload=model, cores=1, policy="bad", seed=3, jobs=20_000)
    assert found.bound is not None
    assert (found.stable, found.status) == (False, Status.UNSTABLE)
    assert "jobs present grow" in found.notes[0]


@pytest.mark.parametrize(
    ("options", "status", "met"),
    [
        ({"precision": 0.5}, "complete", True),
        ({"precision": 1e-6}, "precision not reached", False),
        ({"precision": 1e-6, "status": "interrupted"}, "interrupted", False),
        ({}, "complete", True),
    ],
)
def test_precision_is_labelled(options, status, met):
    """A precision that was not reached is said, unless the run was interrupted, which is said instead."""
    found = queue(jobs=5000, **options)
    assert (found.status, found.precision_reached) == (status, met)
    assert ("[" in str(found)) == (status != "complete")


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_runs(size):
    """No record at all, or a single one, gives a result that says that it knows nothing, also on disk."""
    found = summarise([records(np.ones(size))], workload=MODEL, cores=2, policy="p", seed=0, jobs=size)
    assert found.to_dict()["cost"]["low"] is None
    assert any("too few jobs" in note for note in found.notes)
    assert Result.from_dict(json.loads(json.dumps(found.document())), found.records) == found


def test_a_class_without_jobs_is_named():
    """A class of which no job has left is named in the notes."""
    run = records(np.tile([6.0, 2.0], (40, 1)), np.tile([10.0, 0.0], (40, 1)))
    found = summarise([run], workload=workload((1.0, 1.0)), cores=9, policy="p", seed=0, jobs=400)
    assert "no job of class-1 has left" in found.notes[-1]


def test_round_trip(result, tmp_path):
    """Saving and reading gives an equal result with equal records; only two files are left behind."""
    path = result.save(tmp_path / "deep" / "run")
    assert sorted(p.name for p in path.parent.iterdir()) == ["run.json", "run.npz"]
    again = Result.read(path)
    assert again == result
    assert again.workload == result.workload
    assert again.records[0].response.tobytes() == result.records[0].response.tobytes()
    assert Result.read(tmp_path / "deep" / "run") == result
    assert again != dataclasses.replace(result, policy="other")
    assert again != dataclasses.replace(result, records=())
    assert again != 3


def test_saving_again_replaces(result, tmp_path):
    """A second save to the same place replaces the first, records and all."""
    result.save(tmp_path / "run.json")
    other = queue(seed=2, jobs=2000)
    other.save(tmp_path / "run.json")
    assert Result.read(tmp_path / "run.json") == other


def test_a_workload_without_a_document_is_no_obstacle(tmp_path):
    """A speedup that is a lambda cannot be written, but the numbers are; the rest is as it was."""
    job = JobClass(
        "c", {"kind": "poisson", "rate": 1.0}, {"kind": "exponential", "rate": 2.0}, lambda k: k**0.5
    )
    model = Workload("own", (job,))
    found = summarise([records(np.ones(50))], workload=model, cores=2, policy="p", seed=0, jobs=5000)
    again = Result.read(found.save(tmp_path / "run"))
    assert again.workload is None
    assert again.cost == found.cost
    with pytest.raises(ResultError, match="cannot be merged"):
        merge([again])


def damaged_document(path):
    path.write_text(path.read_text()[:200])


def damaged_records(path):
    path.with_suffix(".npz").write_bytes(path.with_suffix(".npz").read_bytes()[:500])


def missing_records(path):
    path.with_suffix(".npz").unlink()


def missing_key(path):
    document = json.loads(path.read_text())
    del document["cost"]
    path.write_text(json.dumps(document))


def another_format(path):
    document = json.loads(path.read_text())
    document["file"]["format"] = 99
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damaged_document, "not valid JSON"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "not valid JSON"),
        (lambda path: path.write_text("[1]"), "not a saved result"),
        (lambda path: path.write_text("{}"), "not a saved result"),
        (lambda path: path.unlink(), "there is no file"),
        (damaged_records, "not the one"),
        (missing_records, "there is no file"),
        (missing_key, "not a saved result"),
        (another_format, "format 99"),
    ],
)
def test_damaged_files(damage, message, tmp_path):
    """A missing, cut or foreign file gives one sentence that names the file."""
    path = queue(jobs=2000).save(tmp_path / "run")
    damage(path)
    with pytest.raises(MalleableError, match=message) as caught:
        Result.read(path)
    assert "run." in caught.value.sentence


def test_a_place_that_cannot_be_written(tmp_path):
    """A folder that is a file gives one sentence, not a traceback, and leaves no temporary file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="cannot write"):
        queue(jobs=2000).save(tmp_path / "file" / "run")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_merge_is_the_summary_of_all_replications():
    """Merged results equal one summary of all their records; jobs, events and seeds add up."""
    parts = [queue(seed=seed, jobs=10_000) for seed in range(6)]
    found = Result.merge(parts)
    assert found.replications == found.batches == 6
    assert found.seeds == (0, 1, 2, 3, 4, 5)
    assert (found.seed, found.jobs, found.events) == (0, 60_000, 120_000)
    assert found.cost.low < 0.7 / 0.3 < found.cost.high
    everything = [part.records[0] for part in parts]
    options = {"events": 120_000, "seconds": 3.0}
    whole = summarise(
        everything, workload=MODEL, cores=1, policy="fcfs", seed=range(6), jobs=60_000, **options
    )
    assert found == whole


def test_merge_carries_an_interruption():
    """If one of the runs was interrupted, so is the merged one."""
    parts = [queue(seed=1, jobs=2000), queue(seed=2, jobs=2000, status="interrupted")]
    assert merge(parts).status == "interrupted"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "the seed 1"),
        ({"policy": "lcfs"}, "different policy: fcfs and lcfs"),
        ({"cores": 2}, "different cores"),
        ({"load": 0.6}, "different workload"),
        ({"confidence": 0.9}, "different confidence"),
        ({"keep_records": False}, "without its records"),
    ],
)
def test_merge_refuses(other, message):
    """Results of the same seed, of other settings or without records are not merged."""
    with pytest.raises(ResultError, match=message):
        merge([queue(seed=1, jobs=2000), queue(**{"seed": 2, "jobs": 2000, **other})])
    with pytest.raises(ResultError, match="nothing to merge"):
        merge([])


def test_frame(result):
    """A DataFrame has one row per result, or one per class, and flat columns."""
    whole = result.to_frame()
    assert len(whole) == 1
    assert "class" not in whole.columns
    assert whole.loc[0, "cost"] / whole.loc[0, "bound_tight"] - 1.0 == pytest.approx(whole.loc[0, "gap"])
    frame = result.to_frame(classes=True)
    assert len(frame) == len(result.classes)
    assert frame.loc[0, "cost"] == result.cost.mean
    assert frame.loc[0, "response_time_low"] == result.classes[0].response_time.low
    assert {"class", "response_time_p99", "slowdown_p95", "width_p50", "cost_high"} <= set(frame.columns)


def test_frame_without_pandas(result, monkeypatch):
    """Without pandas the error says what to install."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ResultError, match=r"pip install 'malleable\[frames\]' .*-e '\.\[frames\]'"):
        result.to_frame()


@pytest.fixture(scope="module")
def comparison():
    """Two policies on the same jobs at two numbers of cores; the rival costs 0.1 more."""
    rng = np.random.default_rng(5)
    model = workload((1.0, 2.0))
    results = []
    for cores in (4, 8):
        noise = ar1(rng, (600, 2), 0.9)
        for policy, extra in (("wham", 0.0), ("equi", 0.1)):
            times = 10.0 + noise + extra + 0.01 * rng.standard_normal(noise.shape)
            given = {"workload": model, "cores": cores, "policy": policy, "seed": 7, "jobs": 120_000}
            results.append(summarise([records(times)], **given))
    return Comparison.of(results)


def test_comparison(comparison):
    """Differences are paired by cores, policy minus baseline, and far tighter than either cost."""
    assert [(d.cores, d.policy, d.baseline) for d in comparison.differences] == [
        (4.0, "equi", "wham"),
        (8.0, "equi", "wham"),
    ]
    for d in comparison.differences:
        assert d.low < 0.1 < d.high
        assert d.significant
        assert d.high - d.low < comparison.results[0].cost.half_width / 10.0
    document = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert list(document) == ["results", "differences"]
    expected = ["cores", "load", "policy", "baseline", "mean", "low", "high"]
    assert list(document["differences"][0]) == expected
    assert "equi − wham on 4 cores" in str(comparison)


def test_comparison_round_trip(comparison, tmp_path):
    """A comparison survives the disk, and its frame has the differences beside the policies."""
    again = Comparison.read(comparison.save(tmp_path / "all"))
    assert again == comparison
    assert len(again.to_frame()) == 4
    frame = again.to_frame(classes=True)
    assert len(frame) == 8
    assert frame["difference"].notna().sum() == 4
    # The gap is taken to the tightest bound, which stands beside it.
    np.testing.assert_allclose(frame["cost"] / frame["bound_tight"] - 1.0, frame["gap"])
    assert frame["bound_name"].notna().all()
    with pytest.raises(MalleableError, match="not a saved result"):
        Result.read(tmp_path / "all")


def test_notebooks_show_tables(comparison, result):
    """A result and a comparison are short as text, and tables in a notebook, with every cost in them."""
    assert len(repr(comparison)) < 1000
    assert repr(result).startswith("<Result: ")
    shown = comparison._repr_html_()
    tables = ET.fromstring(shown)
    assert len(tables.findall(".//tbody/tr")) == len(comparison.results)
    for one in comparison.results:
        assert str(one.cost) in shown
    assert str(result.cost) in result._repr_html_()
    ET.fromstring(result._repr_html_())


def test_another_baseline(comparison):
    """Any policy may be the baseline, and an unknown one is refused with a suggestion."""
    turned = Comparison.of(comparison.results, "equi")
    for ours, theirs in zip(turned.differences, comparison.differences, strict=True):
        assert ours.mean == pytest.approx(-theirs.mean, rel=1e-9)
    with pytest.raises(ResultError, match="did you mean 'equi'"):
        Comparison.of(comparison.results, "equii")
    with pytest.raises(ResultError, match="nothing to compare"):
        Comparison.of([])


def test_comparison_needs_records(comparison):
    """Without records there is nothing to pair."""
    bare = [dataclasses.replace(r, records=()) for r in comparison.results]
    with pytest.raises(ResultError, match="no paired difference"):
        Comparison.of(bare)


def test_difference_text_and_limits():
    """An interval that is the whole line is null in JSON and comes back as it was."""
    open_ended = Difference(4.0, "a", "b", 1.0, -np.inf, np.inf)
    assert open_ended.to_dict()["low"] is None
    assert Difference.from_dict(open_ended.to_dict()) == open_ended
    assert not open_ended.significant
    assert str(Estimate(2.0, 1.5, 2.5)) == "2 ± 0.5"
