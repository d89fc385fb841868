"""Plans of logs: as a replay on every number of cores, and never against the bound of a price path."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import malleable
from malleable import api
from malleable.errors import JobsError, MalleableError, ParameterError, TraceError, UnsupportedError
from malleable.model import ConditionWarning, Workload
from malleable.model.job_list import JobList
from malleable.planning import changes
from malleable.planning.log_plan import Replayed, is_log
from malleable.planning.targets import read_target
from malleable.replays.running import run_policy
from malleable.theory.price_path import bound_for_jobs
from support import logs


def given(seed, count=60, *, width=None, **columns):
    """Jobs of two classes, on their way to about eight cores; with a width, those of one class are rigid."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "name": name,
            "arrivals": {"kind": "poisson", "rate": 1.0},
            "size": {"kind": "exponential", "mean": 1.0},
            "speedup": {"kind": "amdahl", "sequential": part},
            "holding_cost": cost,
        }
        for name, part, cost in (("etl", 0.3, 1.0), ("train", 0.02, 2.0))
    ]
    if width is not None:
        rows[0] |= {"shape": "rigid", "width": width}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        made = Workload.from_dict({"name": "made", "classes": rows})
    times = np.cumsum(rng.exponential(60.0, count))
    return JobList(made, times, rng.integers(0, 2, count), rng.exponential(300.0, count) + 1.0, **columns)


def metric(jobs, target, policy, n):
    """The metric of a target in a replay, computed by hand."""
    done = run_policy(policy, jobs, float(n))
    mine = np.ones(len(jobs), dtype=bool)
    if target.job_class is not None:
        mine = jobs.classes == jobs.workload.index(target.job_class)
    response = (done.ends - jobs.times)[mine]
    if target.metric == "cost":
        return float((response * jobs.weight[mine]).mean())
    if target.metric == "slowdown":
        return float(np.maximum(response / np.maximum(jobs.sizes[mine], 10.0), 1.0).mean())
    if target.metric == "wait":
        return float((done.starts - jobs.times)[mine].mean())
    return float(response.mean() if target.level is None else np.quantile(response, target.level))


FORMS = ("cost", "response", "p95", "p99(train)", "slowdown", "wait", "response(etl)", "cost(train)")


@pytest.mark.parametrize("form", FORMS)
def test_as_a_replay_on_every_number(form):
    """What is found meets the target and one core fewer does not, as replays by hand say."""
    for seed, policy in enumerate(("wham", "equi", "fcfs")):
        jobs = given(seed)
        target = read_target(f"{form} < 1", jobs.workload.class_names)
        value = metric(jobs, target, policy, 9) or 1.0
        found = malleable.plan(jobs, f"{form} < {1.001 * value!r}", policy, cores=16, most=64)
        assert found.reached
        assert found.confidence == 1.0
        assert metric(jobs, target, policy, found.cores) < 1.001 * value
        if found.misses and found.misses > (found.certificate or (0,))[0]:
            assert metric(jobs, target, policy, found.misses) >= 1.001 * value
        assert found.misses == found.cores - 1


@pytest.mark.parametrize("form", FORMS)
def test_certificates_never_contradict_a_replay(form):
    """No number of cores that is ruled out meets the target, under any of some policies."""
    jobs = given(7, 40)
    target = read_target(f"{form} < 1", jobs.workload.class_names)
    reached = {n: min(metric(jobs, target, p, n) for p in ("wham", "equi", "srpt")) for n in (3, 6, 12)}
    for n, value in reached.items():
        meter = Replayed(
            jobs, 8.0, "wham", read_target(f"{form} < {max(value, 1e-9) * 1.0001!r}", ("etl", "train"))
        )
        ruled_out = meter.ruled_out(64)
        assert ruled_out is None or ruled_out[0] < n
        assert meter.bound(n) <= value * (1.0 + 1e-9)


def test_one_price_path_bounds_every_number_of_cores():
    """D(l; n') = D(l; n) − (n' − n)∫l, for jobs that may be wider than the machine: at n it is D(l; n)."""
    jobs = given(3, 40)
    found = bound_for_jobs(jobs, 6.0, widest=20.0)
    assert found.at(6.0) == pytest.approx(max(found.by_prices, found.alone), rel=1e-12)
    paid = float(found.path.paid[-1])
    assert found.at(5.0) == pytest.approx(found.by_prices + paid, rel=1e-12)
    for n in (3, 5, 6, 8, 20):
        assert found.at(n) <= float(run_policy("wham", jobs, float(n)).costs.sum()) * (1.0 + 1e-9)


def test_the_certificate_is_that_of_the_prices():
    """The number ruled out is the largest that the bound rules out, and the next is not."""
    jobs = given(1)
    limit = metric(jobs, read_target("cost < 1"), "wham", 8)
    found = malleable.plan(jobs, f"cost < {limit!r}", cores=8, most=40)
    cores, bound = found.certificate
    assert bound >= limit
    assert cores < found.cores
    assert all(point.bound <= point.cost for point in found.curve if point.cost and point.bound)


def test_no_number_of_cores_is_enough():
    """A job that takes an hour however wide it is rules out half an hour on every number."""
    jobs = given(2)
    alone = float((jobs.sizes * 0.02).max())
    found = malleable.plan(jobs, f"p99 < {0.5 * alone!r}", cores=16)
    assert not found.reached
    assert found.confidence == 1.0
    assert found.certificate[0] == found.most
    assert "No policy meets" in found.words[0]


def test_the_cheapest_number():
    """With prices, no number of cores that a look at all of them finds costs less."""
    jobs = given(5)
    found = malleable.plan(jobs, cores=8, core_price=0.5, most=60)
    hours = float(jobs.times[-1] - jobs.times[0]) / 3600.0

    def money(n):
        return 0.5 * n + float(run_policy("wham", jobs, float(n)).costs.sum()) / 3600.0 / hours

    costs = {n: money(n) for n in range(1, 61)}
    assert found.cores == min(costs, key=costs.get)
    dear = malleable.plan(jobs, cores=8, core_price=0.5, job_price=20.0, most=60)
    assert dear.cores > found.cores


def test_rented_cores():
    """The hours are those of the price path above the price; the dearer the fewer, and none at any price."""
    jobs = given(6)
    some = [malleable.plan(jobs, "cost < 500", cores=8, burst_price=p).burst for p in (1e-3, 0.1, 1e9)]
    assert some[0].hours >= some[1].hours > some[2].hours == 0.0
    assert some[0].saving > some[1].saving > some[2].saving == 0.0
    assert some[0].hours <= some[0].span


def test_changes_of_a_log():
    """Each change is the plan of the jobs that it makes, and as large as it is said to be."""
    jobs = given(4, epoch=8 * 3600.0)
    limit = metric(jobs, read_target("cost < 1"), "wham", 9)
    found = malleable.plan(jobs, f"cost < {limit!r}", cores=16, growth="50%", halve="etl", night="train")
    made = [changes.grown_log(jobs, 0.5), changes.halved_log(jobs, "etl")]
    made.append(changes.by_night(jobs, np.flatnonzero(jobs.classes == 1)))
    for change, other in zip(found.changes, made, strict=True):
        assert change.cores == malleable.plan(other, f"cost < {limit!r}", cores=16).cores
        assert change.cores == found.cores + change.more
    assert found.changes[0].more > 0 > found.changes[1].more


def test_jobs_by_night():
    """Jobs of the day come at ten in the evening, those of the night when they came; none is lost."""
    times = 3600.0 * np.array([1.0, 6.9, 7.1, 12.0, 21.9, 22.1])
    jobs = JobList(given(1).workload, times, [0, 0, 0, 1, 0, 0], np.ones(6), ids=tuple("abcdef"), epoch=0.0)
    moved = changes.by_night(jobs, np.flatnonzero(jobs.classes == 0))
    came = dict(zip(moved.ids, moved.times / 3600.0, strict=True))
    assert came == pytest.approx({"a": 1.0, "b": 6.9, "c": 22.0, "d": 12.0, "e": 22.0, "f": 22.1})
    assert sorted(moved.times) == moved.times.tolist()
    with pytest.raises(TraceError, match="time of the day"):
        changes.by_night(given(1), np.array([0]))


def test_rigid_jobs_need_their_width():
    """On fewer cores than the width of a rigid job no plan is tried."""
    found = malleable.plan(given(1, width=5), "cost < 1e9", cores=8)
    assert (found.cores, found.misses) == (5, 4)


def test_what_is_a_log(tmp_path):
    """A study and a log are logs; a workload, a built-in name and what is not there are none."""
    study = logs.written(tmp_path, 'log = "x.swf"\n', "study.toml")
    workload = logs.written(tmp_path, '[[classes]]\nname = "a"\n', "w.toml")
    log = logs.written(tmp_path, logs.SWF, "x.swf")
    assert [is_log(one) for one in (study, log)] == [True, True]
    assert not any(is_log(one) for one in (workload, "paper", "-", tmp_path / "none", tmp_path / "no.toml"))


def test_a_log_by_its_file(tmp_path):
    """A file is read, made malleable as asked, and its number of cores is that of the log."""
    log = logs.written(tmp_path, logs.SWF, "x.swf")
    found = api.plan(str(log), "response < 1h", malleable=1.0)
    assert found.reached
    assert "64 now" in found.words[1]
    assert any("Amdahl" in one or "amdahl" in one for one in found.assumptions)
    part = api.plan(str(log), "response < 1h", "easy", malleable=0.0, make_malleable="50%")
    assert part.changes[0].what == "50 % of the jobs malleable"


def test_stopped():
    """Ctrl-C in the middle leaves what is known."""
    jobs, told = given(1, 400), []

    def stop(done, total):
        told.append((done, total))
        if done > 1000:
            raise KeyboardInterrupt

    limit = metric(jobs, read_target("p95 < 1"), "wham", 9)
    found = malleable.plan(jobs, f"p95 < {limit!r}", cores=30, progress=stop)
    assert found.status == "interrupted"
    assert found.confidence is None


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"target": "cost(x) < 1"}, ParameterError, "no class is called 'x'"),
        ({"target": "cost < 1", "halve": "x"}, ParameterError, "no class is called 'x'"),
        ({"target": "cost < 1", "night": "etl"}, TraceError, "time of the day"),
        ({"target": "cost < 1", "add": "paper"}, UnsupportedError, "a log has the classes"),
        ({"target": "cost < 1", "make_malleable": 0.5}, UnsupportedError, "given jobs are as they are"),
        ({"target": "cost < 1", "burst_price": -1.0}, ParameterError, "burst-price must be positive"),
        ({"target": "cost < 1", "policy": "nonsense"}, MalleableError, "no policy is called"),
        ({}, ParameterError, "nothing to plan for"),
    ],
)
def test_wrong_questions(options, error, words):
    """What makes no sense is one line."""
    with pytest.raises(error, match=words):
        malleable.plan(given(1), cores=8, **options)


def test_an_empty_log():
    """A log without jobs, and jobs without a number of cores, are one line."""
    jobs = given(1)
    none = changes.some_jobs(jobs, np.array([], dtype=int))
    with pytest.raises(JobsError, match="no job in the log"):
        malleable.plan(none, "cost < 1", cores=8)
    with pytest.raises(ParameterError, match="how many cores"):
        malleable.plan(jobs, "cost < 1")


@logs.real
@pytest.mark.slow
def test_the_nasa_log():
    """A plan of a real log: replays by hand agree, and the certificate is near."""
    jobs = api.malleabilise(logs.NASA, malleable=1.0)
    found = malleable.plan(jobs, "cost < 600", cores=128)
    meets, misses = (run_policy("wham", jobs, float(n)).cost for n in (found.cores, found.misses))
    assert meets < 600.0 <= misses
    assert 0.85 * found.cores < found.certificate[0] < found.cores
