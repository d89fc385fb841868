"""Play: the live system in real time. Nothing here depends on how fast the machine is."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.run import Run, departures
from malleable.errors import InfeasibleError, ParameterError
from malleable.live.core.scheduler import Scheduler
from malleable.live.play import Played, play
from malleable.live.play.played import Lateness, _doubts
from malleable.live.play.records import records_of
from malleable.live.play.session import Seen, Session
from malleable.live.play.work import Sleeping
from malleable.model import Workload, paper_workload
from malleable.results import Comparison
from malleable.simulation import program
from malleable.sources import ArrayStream, Chunk, Drawn

FAST = 20.0
"""Units of model time per second that no machine keeps up with; what is tested holds all the same."""


def drawn(workload, count, seed=0):
    return Chunk(*(part[:count] for part in Drawn(seed).stream(workload).take()[:3]))


@pytest.mark.parametrize(("cores", "load", "policy"), [(8, 0.5, "wham"), (4, 0.95, "equi")])
def test_records_are_those_of_the_simulator(cores, load, policy):
    """From times of departure alone come the records that the engine keeps, stretch by stretch."""
    workload = paper_workload().at(cores, load)
    jobs = drawn(workload, 1000)
    made = program(Policy.of(policy), workload, cores)
    run = Run(workload, cores, made, jobs=1000, source=ArrayStream(*jobs))
    run.extend(1000)
    expected = run.outcome().records
    seen = Seen(departures(workload, cores, made, jobs), came=1000)
    got = records_of(jobs, seen, cores, 3, expected)
    assert got.size == expected.size == 125
    for name in ("departures", "arrivals", "present", "segment", "response_histogram", "slowdown_histogram"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)
    for name in ("response", "slowdown", "work", "area", "duration", "overload"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(expected, name), rtol=1e-6, atol=1e-9, err_msg=name
        )


def test_records_of_a_part():
    """A run that was stopped has the records up to there; before the first there is none."""
    workload = paper_workload().at(8, 0.5)
    jobs = drawn(workload, 200)
    made = program(Policy.of("wham"), workload, 8)
    run = Run(workload, 8, made, jobs=200, source=ArrayStream(*jobs))
    run.extend(200)
    expected = run.outcome().records
    left = departures(workload, 8, made, jobs)
    for came in (0, 5, 8, 100):
        until = np.where(left <= (jobs.times[came - 1] if came else 0.0), left, math.nan)
        got = records_of(jobs, Seen(until, came=came), 8, 3, expected)
        assert got.size == came // 8
        np.testing.assert_array_equal(got.departures, expected.departures[: came // 8])
        np.testing.assert_allclose(got.area, expected.area[: came // 8], atol=1e-9)


def test_cores_in_use_and_resizes():
    """The integral of the cores in use and the number of resizes are those of what was noted."""
    jobs = Chunk(np.array([1.0, 3.0, 4.0, 6.0]), np.zeros(4, dtype=np.int64), np.ones(4))
    like = Run(paper_workload(), 4, program(Policy.of("equi"), paper_workload(), 4), jobs=4,
               source=ArrayStream(*jobs))  # fmt: skip
    like.extend(4)
    template = like.outcome().records
    seen = Seen(
        np.full(4, math.nan), came=4, used=[(0.0, 0), (1.0, 3), (5.0, 1)], resizes=[(2.0, 0), (9.0, 0)]
    )
    got = records_of(jobs, seen, 4, 3, template)
    assert got.used.sum() == pytest.approx(3.0 * 4.0 + 1.0)
    assert got.resizes.sum() == 1.0


@pytest.mark.parametrize("policy", ["wham", "equi", "greedy", "srpt", "pollux:period=0.3"])
def test_a_session_is_true_to_itself(policy):
    """However late the machine is: no more cores in use than there are, and every job does all its work.

    A job leaves no earlier than if it had had all cores from its arrival on.
    """
    workload = paper_workload().at(8, 0.6)
    jobs = drawn(workload, 60)
    scheduler = Scheduler(workload, 8, policy, learn=False)
    seen = Session(scheduler, jobs, Sleeping(workload), FAST).run()
    assert seen.came == 60
    assert not scheduler.problem
    assert max(cores for _, cores in seen.used) <= 8
    assert seen.used[-1][1] == 0
    left = ~np.isnan(seen.departures)
    assert left.sum() == scheduler.ended["finished"]
    assert scheduler.ended["cancelled"] == 60 - left.sum()
    fastest = np.array([float(s(8)) for s in workload.speedups])[jobs.classes]
    assert (seen.departures - jobs.times - jobs.sizes / fastest)[left].min() >= -1e-9
    assert min(seen.late) >= 0.0


def test_resizing_has_its_price():
    """Jobs that pause after a resize are there for as long as the pauses take, at least."""
    document = paper_workload().to_dict()
    for row in document["classes"]:
        row["resize"] = {"pause": 0.5}
    workload = Workload.from_dict(document)
    jobs = Chunk(np.array([0.01, 0.02, 5.0]), np.array([0, 0, 0]), np.array([1.0, 1.0, 1.0]))
    seen = Session(Scheduler(workload, 4, "equi"), jobs, Sleeping(workload), FAST).run()
    assert len(seen.resizes) >= 1
    first = seen.departures[:2]
    assert np.nanmax(first) >= 0.01 + 1.0 / 4**0.3 + 0.5


def test_results_stand_beside_the_simulators():
    """Both results are of the same jobs and warm-up, and their difference is the paired one."""
    told = []
    found = play(
        paper_workload(), 8, ["wham", "equi"], jobs=120, load=0.3, speed=FAST,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert [one.live.policy for one in found.policies] == ["wham", "equi"]
    for one in found.policies:
        assert one.live.jobs == one.simulated.jobs == 120
        assert one.live.warmup == one.simulated.warmup
        assert one.simulated.policy == f"{one.live.policy} (simulated)"
        assert one.difference.mean == pytest.approx(one.live.cost.mean - one.simulated.cost.mean)
        assert one.share == pytest.approx(one.difference.mean / one.simulated.cost.mean)
        assert one.live.whole_cores
        assert one.live.gap is not None
        assert one.lateness.most >= one.lateness.p99 >= 0.0
    assert told[-1][1] == 240
    assert max(done for done, _ in told) > 120
    assert json.dumps(found.to_dict())
    assert not found.interrupted


def test_what_is_saved_can_be_read(tmp_path):
    """The results, live and simulated, are a comparison like any other."""
    found = play(paper_workload(), 8, ["wham"], jobs=80, load=0.3, speed=FAST)
    folder = found.comparison().save_table(tmp_path / "out")
    again = Comparison.read(folder / "comparison.json")
    assert [result.policy for result in again.results] == ["wham", "wham (simulated)"]
    assert again.differences == found.comparison().differences


@pytest.mark.parametrize(
    ("stop", "policies", "missing"), [(150, 2, ()), (90, 1, ("equi",)), (3, 0, ("wham", "equi"))]
)
def test_interrupted(stop, policies, missing):
    """Ctrl-C ends it with what is there: a policy that got past its warm-up counts, others are missing."""

    def progress(done, total):
        if done >= stop:
            raise KeyboardInterrupt

    found = play(paper_workload(), 8, ["wham", "equi"], jobs=100, load=0.3, speed=FAST, progress=progress)
    assert found.interrupted
    assert len(found.policies) == policies
    assert found.missing == missing
    if policies:
        assert found.policies[-1].live.status == "interrupted"


@pytest.mark.parametrize(
    ("wrong", "options", "says"),
    [
        (ParameterError, {"speed": 0.0}, "speed"),
        (ParameterError, {"jobs": 0}, "jobs"),
        (ParameterError, {"warmup": 500}, "warm-up"),
        (ParameterError, {"cores": 10_000, "burn": True}, "this machine has"),
        (ParameterError, {"policies": []}, "no policy"),
        (InfeasibleError, {"load": 1.5}, "load"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(wrong, options, says):
    """Wrong options are errors of ours that name them, before anything is played."""
    given = {"cores": 8, "policies": ["wham"], "jobs": 100} | options
    with pytest.raises(wrong, match=says):
        play(paper_workload(), given.pop("cores"), given.pop("policies"), **given)


def test_the_speed_by_default():
    """By default at most 40 jobs come per second, and they are there for a tenth of a second or longer."""

    def stopped(*_):
        raise KeyboardInterrupt

    for load in (0.05, 0.3, 0.9):
        workload = paper_workload().at(32, load)
        speed = play(workload, 32, ["equi"], jobs=10, progress=stopped).speed
        assert 0.0 < speed * workload.total_rate <= 40.0 * 1.05
        fastest = sum(workload.loads / [float(s(32)) for s in workload.speedups]) / workload.total_rate
        assert fastest / speed >= 0.02


def test_lateness():
    """Of nothing it is 0; otherwise mean, tail and most."""
    assert Lateness.of([]) == Lateness(0.0, 0.0, 0.0)
    assert Lateness.of([0.0, 1.0, 2.0]).mean == 1.0
    assert Lateness.of([0.0, 1.0, 2.0]).most == 2.0


def test_a_late_machine_says_so():
    """Where jobs are late by more than they can be timed, the result has a note."""
    found = play(paper_workload(), 8, ["wham"], jobs=60, load=0.5, speed=5000.0)
    assert any("lower speed" in note for note in found.policies[0].live.notes)


def test_burning():
    """Jobs that burn work in CPU time of this machine: they take at least as long as their work needs."""
    workload = paper_workload().at(1, 0.5)
    before = time.monotonic()
    found = play(workload, 1, ["fcfs"], jobs=16, speed=4.0, warmup=0, burn=True)
    passed = time.monotonic() - before
    assert isinstance(found, Played)
    live = found.policies[0].live
    jobs = drawn(workload, 16)
    assert found.burned
    assert live.jobs == 16
    assert passed * 4.0 >= jobs.times[-1]
    done = sum(c.jobs for c in live.classes)
    assert done >= 1
    records = live.records[0]
    assert records.response.sum() >= records.work.sum() * 0.999


def test_cpu_time_that_others_took_is_said():
    """Jobs that did not get the CPU time of their cores have a note that says so."""
    (note,) = _doubts("", 0.4, 0.0, 1.0, 1.0)
    assert "40%" in note
    assert list(_doubts("", 1.0, 0.0, 1.0, 1.0)) == []
    assert "no plan" in next(iter(_doubts("no plan", 1.0, 0.0, 1.0, 1.0)))


@pytest.mark.slow
def test_the_papers_workload():
    """On 32 virtual cores the cost is within 5 % of the simulator's for the same jobs, in the same order.

    That takes a machine that handles what is due in good time; one that does not says so, and proves nothing.
    """
    found = play(paper_workload(), 32, ["wham", "equi", "greedy"], load=0.7, jobs=800, speed=0.25)
    if any("lower speed" in note for one in found.policies for note in one.live.notes):
        pytest.skip("this machine is too busy for real time")
    for one in found.policies:
        assert abs(one.share) < 0.05
    for one in found.policies:
        for other in found.policies:
            if one.simulated.cost.mean < 0.98 * other.simulated.cost.mean:
                assert one.live.cost.mean < other.live.cost.mean
