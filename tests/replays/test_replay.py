"""Replays: equal to simulation, to independent schedulers, and to the log; bounded; blamed to the digit."""

from dataclasses import replace

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.errors import MalleableError, ParameterError
from malleable.model import paper_workload
from malleable.model.job_list import JobList
from malleable.replays import read_shares, replay, share_curve
from malleable.replays.running import OWN
from malleable.results import Comparison
from malleable.simulation import Settings, Task, run_task
from malleable.sources import Drawn, stream
from malleable.traces import malleabilise, read_trace
from support.batch_schedulers import easy_departures, fcfs_departures
from support.logs import JOBCOMP, NASA, PHILLY, POLLUX, real, written

LOG = """\
id,arrival,duration,cores,wait,user,estimate,class
a,0,100,4,0,ann,120,x
b,0,50,8,100,bob,60,y
c,30,20,2,5,ann,20,x
d,400,10,8,0,eve,5,y
e,401,30,1,12,bob,30,x
"""


@pytest.fixture
def trace(tmp_path):
    return read_trace(written(tmp_path, LOG))


@pytest.fixture
def jobs(trace):
    return malleabilise(trace)


def drawn(count, seed, cores=6, load=0.8, **columns):
    """Jobs of the paper's workload."""
    workload = paper_workload(cores, load)
    some = stream(workload, seed, chunk=count).take()
    return JobList(workload, some.times, some.classes, some.sizes, **columns)


@pytest.mark.parametrize("name", ["wham", "fw-cam", "srpt", "equi"])
def test_a_replay_of_generated_jobs_is_a_simulation(name):
    """Departures in each stretch to the job, response times and cores in use to rounding, class by class."""
    workload = paper_workload(64, 0.25)
    task = Task(workload, 64, Policy.of(name), name, Settings(jobs=5000), Drawn(3))
    simulated = run_task(task).records
    some = Drawn(3).stream(workload).take()
    found = replay(JobList(workload, some.times, some.classes, some.sizes), 64, name, bound=False).schedules[
        0
    ]
    edges = np.cumsum(simulated.duration)
    for i in range(3):
        own = some.classes == i
        for column, weights in ((simulated.departures, None), (simulated.response, found.responses[own])):
            counted, _ = np.histogram(found.ends[own], np.append(0.0, edges), weights=weights)
            np.testing.assert_allclose(counted, column[:, i], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["wham", "easy", "hesrpt"])
def test_measures_are_what_they_say(jobs, name):
    """Waits, slowdowns, utilisation, area-weighted response, queue and Jain's index, written out again."""
    found = replay(jobs, 8, name)
    one = found.schedules[0]
    response = [e - a for e, a in zip(one.ends, jobs.times, strict=True)]
    slowdown = [max(1.0, r / max(t, 10.0)) for r, t in zip(response, jobs.run_times, strict=True)]
    assert one.slowdowns.tolist() == pytest.approx(slowdown)
    assert one.cost == pytest.approx(np.mean(response))
    assert one.utilisation == pytest.approx(one.core_time.sum() / (8 * (max(one.ends) - 0.0)))
    area = jobs.cores * jobs.run_times
    assert one.area_response == pytest.approx(sum(area * response) / sum(area))
    users = {user: np.mean([s for s, u in zip(slowdown, jobs.users, strict=True) if u == user])
             for user in jobs.users}  # fmt: skip
    values = np.array(list(users.values()))
    assert one.jain == pytest.approx(values.sum() ** 2 / (len(values) * (values**2).sum()))
    document = found.to_dict()["results"][0]
    assert document["response"]["p95"] == pytest.approx(np.percentile(response, 95))
    assert document["wait"]["mean"] == pytest.approx(np.mean(one.starts - jobs.times))
    assert {row["name"]: row["slowdown"] for row in document["users"]} == pytest.approx(users)
    total = one.usage.cores.sum() * one.usage.length
    assert total == pytest.approx(one.core_time.sum())


def test_the_schedule_of_the_log_costs_what_the_log_says(trace, jobs):
    """Its own waits and run times, beside the policies; and its cores are those of the log."""
    found = replay(jobs, 16, "wham,fcfs")
    own = found[OWN]
    assert own.cost == pytest.approx(np.mean(trace.wait + trace.duration))
    assert own.core_time.sum() == trace.core_seconds.sum()
    assert own.usage.cores.sum() * own.usage.length == pytest.approx(trace.core_seconds.sum())
    assert found.gap(own) > 0.0
    narrow = replay(malleabilise(trace, cores=8), 8, "wham")[OWN]
    assert narrow.rents is not None
    busy = replay(malleabilise(trace, cores=8), 8, "wham")
    assert busy.gap(busy[OWN]) >= busy.gap(busy["wham"])


def test_a_bound_does_not_hold_for_a_log_that_had_more_cores(trace):
    """The log used fourteen cores at once, so on eight its own schedule has no gap, and a note says why."""
    wide = replace(trace, wait=np.where(np.arange(len(trace)) == 1, 0.0, trace.wait))
    found = replay(malleabilise(wide, cores=8), 8, "wham")
    assert found.gap(found[OWN]) is None
    assert any("14 cores at once" in note for note in found[OWN].notes)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_lies_below_every_policy_and_blame_adds_up(seed):
    """On random jobs with weights: cost − bound is regret + idle to rounding, each at least 0."""
    rng = np.random.default_rng(seed)
    count, cores = int(rng.integers(5, 80)), int(rng.integers(2, 12))
    jobs = drawn(count, seed, cores, float(rng.uniform(0.2, 1.3)), weights=rng.choice([0.5, 1.0, 3.0], count))
    found = replay(jobs, cores, "wham,equi,greedy,srpt,hesrpt,fcfs,easy,wham-integer")
    for one in found.schedules:
        fault = found.faults[one.policy]
        assert one.cost >= found.bound.per_job * (1.0 - 1e-9)
        assert fault.total + found.bound.by_prices / count == pytest.approx(one.cost, rel=1e-9)
        assert fault.regrets.min() >= -1e-9 * one.cost
        assert fault.idle >= -1e-9 * one.cost
        for shares in (fault.by_class, fault.by_hour):
            assert sum(share.regret for share in shares) == pytest.approx(fault.jobs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_the_bound_lies_below_every_policy_on_many_more(seed):
    """The same on two hundred more."""
    test_the_bound_lies_below_every_policy_and_blame_adds_up(seed)


@real
@pytest.mark.parametrize(("log", "cores", "options"), [
    (NASA, 128, {}),
    (NASA, 128, {"malleable": 0.5}),
    (POLLUX, 64, {"durations": 3600.0}),
    (JOBCOMP, 12, {}),
    pytest.param(PHILLY, 2500, {}, marks=pytest.mark.slow),
])  # fmt: skip
def test_the_bound_holds_on_every_given_log(log, cores, options):
    """No policy, nor the log's own schedule, is cheaper; and blame adds up to each gap."""
    jobs = malleabilise(read_trace(log), cores=cores, **options)
    found = replay(jobs, cores, "wham,easy,fcfs,equi,hesrpt")
    for one in found.schedules:
        if one.rents is not None:
            assert one.cost >= found.bound.per_job * (1.0 - 1e-9)
            fault = found.faults[one.policy]
            lost = fault.total + found.bound.by_prices / len(jobs)
            assert lost == pytest.approx(one.cost, rel=1e-9)


@real
def test_nasa_under_fcfs_and_easy_job_by_job():
    """As independent schedulers have it: every one of the jobs ends when it should."""
    jobs = malleabilise(read_trace(NASA), cores=128)
    found = replay(jobs, 128, "fcfs,easy", bound=False)
    columns = (jobs.times.tolist(), jobs.cores.tolist(), jobs.run_times.tolist())
    np.testing.assert_allclose(found["fcfs"].ends, fcfs_departures(128, *columns), rtol=1e-9)
    np.testing.assert_allclose(found["easy"].ends, easy_departures(128, *columns), rtol=1e-9)


@real
def test_rigid_jobs_cost_the_same_under_fcfs_whatever_the_share():
    """FCFS and EASY run jobs on the cores that they asked for, malleable or not."""
    trace = read_trace(NASA)
    curve = share_curve(trace, 128, "fcfs,wham", (0.0, 1.0), bound=False)
    assert curve.costs[0][0] == pytest.approx(curve.costs[1][0], rel=1e-9)
    assert curve.costs[1][1] < curve.costs[0][1]


def test_results_are_results(jobs, tmp_path):
    """Tables, files and frames of comparisons take a replay; what is saved is read back."""
    found = replay(jobs, 8, "wham,easy")
    assert [result.policy for result in found.results] == ["wham", "easy", OWN]
    assert found.results[0].gap == pytest.approx(found.gap(found["wham"]))
    assert [(d.policy, d.baseline) for d in found.comparison.differences] == [("easy", "wham"), (OWN, "wham")]
    folder = found.save_table(tmp_path / "runs")
    again = Comparison.read(folder / "comparison.json")
    assert [r.cost.mean for r in again.results] == [r.cost.mean for r in found.results]
    assert len(found.to_frame()) == 3
    assert len(found.comparison.to_frame(classes=True)) == 3 * len(found["wham"].by_class.names)


def test_shares_of_the_cost_by_group(jobs):
    """Classes, users and widths each add up to all jobs' regret; the costliest jobs are named."""
    fault = replay(jobs, 8, "easy").faults["easy"]
    for shares in (fault.by_class, fault.by_user, fault.by_width, fault.by_hour):
        assert sum(share.jobs for share in shares) == len(jobs)
        assert sum(share.regret for share in shares) == pytest.approx(fault.jobs)
    worst = fault.costliest()[0]
    assert worst["id"] == jobs.ids[int(np.argmax(fault.regrets))]
    assert fault.words()[0].startswith("Of what easy costs beyond the bound")


def test_the_calendar_is_the_mean_price(jobs):
    """Hours that the log has, each worth the mean price of a core in it; the rest is unknown."""
    found = replay(jobs, 8, "wham")
    values = found.calendar.values
    paid = np.interp(float(jobs.times[-1]), found.bound.edges, found.bound.path.paid)
    assert np.isfinite(values).sum() == 1
    assert np.nanmax(values) == pytest.approx(paid / float(jobs.times[-1]))


def test_resampling_gives_intervals(jobs):
    """Costs have intervals, paired differences shorter ones than unpaired, the same seed the same ones."""
    jobs = drawn(3000, 1)
    found = replay(jobs, 6, "wham,equi", resample=12, seed=4)
    first, second = found.results
    assert 0.0 < first.cost.low < first.cost.mean < first.cost.high < np.inf
    difference = found.comparison.differences[0]
    assert difference.high - difference.low < first.cost.high - first.cost.low + 2 * second.cost.half_width
    again = replay(jobs, 6, "wham,equi", resample=12, seed=4)
    assert again.results[0].cost == first.cost
    assert replay(jobs, 6, "wham").results[0].to_dict()["cost"]["low"] is None
    # On generated jobs it can be checked: a steady workload's own standard error is about the same.
    errors = np.std([replay(drawn(3000, s), 6, "wham", bound=False).schedules[0].cost for s in range(8)])
    assert 0.3 < (first.cost.high - first.cost.low) / (2 * 1.96 * errors) < 3.0
    with pytest.raises(ParameterError, match="1 resampled"):
        replay(jobs, 6, "wham", resample=1)


def test_policies_that_cannot_run_are_left_out(jobs):
    """One of several is left out with a note; alone it is an error."""
    found = replay(jobs, 8, "wham,fw-cam")
    if len(found["wham"].jobs) and len(found.notes):
        assert "fw-cam is left out" in found.notes[0]
    else:
        assert found["fw-cam"].cost > 0.0
    with pytest.raises(MalleableError):
        replay(jobs, 8, "no-such-policy")
    with pytest.raises(ParameterError, match="twice"):
        replay(jobs, 8, "wham,wham")
    with pytest.raises(ParameterError, match="baseline"):
        replay(jobs, 8, "wham", baseline="easy")


def test_what_was_done_is_kept_when_interrupted(trace, jobs):
    """Ctrl-C while logs are resampled leaves the costs; while shares are replayed, those that were done."""
    heard = []

    def stop(done, total):
        heard.append(done)
        if done > 0.7 * total:
            raise KeyboardInterrupt

    found = replay(jobs, 8, "wham,easy", resample=40, progress=stop)
    assert found.interrupted
    assert found.resampling is None
    assert [one.policy for one in found.schedules] == ["wham", "easy", OWN]
    curve = share_curve(trace, 8, "wham", (0.0, 0.5, 1.0), progress=stop)
    assert curve.interrupted
    assert len(curve.shares) == len(curve.costs) == len(curve.bounds) == 2


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("0,50,100", (0.0, 0.5, 1.0)),
        ("0,20,…,100", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ("0,25,...,100", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("0,30,…,100", (0.0, 0.3, 0.6, 0.9, 1.0)),
        ("5%", (0.05,)),
    ],
)
def test_shares_are_read(text, shares):
    """Percentages, and an ellipsis that goes on as it began."""
    assert read_shares(text) == pytest.approx(shares)


@pytest.mark.parametrize("text", ["", "a", "0,…", "…,3", "50,40,…,0", "0,101", "-1", "nan"])
def test_wrong_shares(text):
    """One sentence, with an example."""
    with pytest.raises(ParameterError) as caught:
        read_shares(text)
    assert "0,20,…,100" in caught.value.hint
