"""The live scheduler, event by event: promises, refusals, cores and policies that change."""

from __future__ import annotations

import itertools
import math
import warnings

import pytest

from malleable.errors import InfeasibleError, ParameterError
from malleable.live.broker.cost_so_far import CostSoFar
from malleable.live.core.actions import Grant, Shrink, Start, Stop
from malleable.live.core.admission import shown_memory
from malleable.live.core.events import (
    Cancelled,
    ClassChanged,
    Confirmed,
    CoresChanged,
    Event,
    Finished,
    PolicyChanged,
    Progressed,
    Registered,
    Tick,
    WeightChanged,
)
from malleable.live.core.job_table import CLASS
from malleable.live.core.scheduler import Scheduler
from malleable.model import ConditionWarning, JobClass, Workload, paper_workload


def confirm_all(scheduler, actions, now, handle=None):
    """Carry out actions and all that follow from that; what was asked, in order."""
    done, handle = [], handle or scheduler.handle
    waiting = list(actions)
    while waiting:
        action = waiting.pop(0)
        done.append(action)
        waiting += handle(Confirmed(action.job, action.cores, action.number), now)
    return done


def told(scheduler):
    return {job: account.told for job, account in scheduler.ledger.accounts.items()}


def one_class(**options):
    return Workload(
        "one",
        (
            JobClass(
                "job",
                {"kind": "poisson", "rate": 1.0},
                {"kind": "exponential", "mean": 2.0},
                {"kind": "power", "exponent": 0.5},
                **options,
            ),
        ),
    )


def test_a_job_alone_and_a_second_one():
    """The first job starts on all cores; when a second comes it gives half of them back, until that ends."""
    scheduler = Scheduler(one_class(), 4, "equi")
    assert scheduler.handle(Registered("a", "job"), 0.0) == [Start("a", 4, 1)]
    scheduler.handle(Confirmed("a", 4, 1), 0.1)
    assert scheduler.handle(Registered("b", "job"), 1.0) == [Shrink("a", 2, 2)]
    assert scheduler.handle(Confirmed("a", 2, 2), 1.5) == [Start("b", 2, 1)]
    assert scheduler.handle(Finished("b"), 2.0) == [Grant("a", 4, 3)]


def test_overload_pauses_and_never_pause_does_not():
    """On one core a short newcomer pauses a long job under WHAM, unless that must not be paused."""
    for never, expected in ((False, [Stop("long", 0, 2)]), (True, [])):
        scheduler = Scheduler(one_class(), 1, "wham")
        actions = scheduler.handle(Registered("long", "job", size=100.0, never_pause=never), 0.0)
        confirm_all(scheduler, actions, 0.0)
        assert scheduler.handle(Registered("short", "job", size=0.1), 1.0) == expected


def test_never_pause_leaves_the_policy_the_other_cores():
    """With three cores two protected long jobs keep one each, and the policy's favourite has the third."""
    scheduler = Scheduler(one_class(), 3, "wham")
    for name in ("one", "two"):
        actions = scheduler.handle(Registered(name, "job", size=100.0, never_pause=True), 0.0)
        confirm_all(scheduler, actions, 0.0)
    for name, size in (("s", 1.0), ("t", 2.0), ("u", 3.0)):
        confirm_all(scheduler, scheduler.handle(Registered(name, "job", size=size), 1.0), 1.0)
    assert told(scheduler) == {"one": 1, "two": 1, "s": 1, "t": 0, "u": 0}


def test_memory_is_promised_once_and_in_order():
    """A job starts when it fits; the first that does not holds back those behind it that need memory."""
    scheduler = Scheduler(one_class(), 8, "equi", memory=10.0)
    for name, memory in (("a", 6.0), ("b", 5.0), ("c", 1.0), ("free", 0.0)):
        confirm_all(scheduler, scheduler.handle(Registered(name, "job", memory=memory), 0.0), 0.0)
    assert told(scheduler) == {"a": 4, "b": 0, "c": 0, "free": 4}
    confirm_all(scheduler, scheduler.handle(Finished("a"), 1.0), 1.0)
    assert told(scheduler) == {"b": 3, "c": 3, "free": 2}
    assert scheduler.handle(Registered("huge", "job", memory=11.0), 2.0) == []
    assert scheduler.refused == "job 'huge' needs 11 bytes of memory, and there are 10 bytes in all"


def test_memory_is_told_in_a_persons_units():
    """A refusal names sizes as people write them."""
    sizes = {0.0: "0 bytes", 1023.0: "1,023 bytes", 2.0**20: "1 MiB", 2.5e10: "23.3 GiB", 2.0**41: "2 TiB"}
    assert {size: shown_memory(size) for size in sizes} == sizes


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Registered("a", "job"), "job 'a' is there already"),
        (Registered("b", "jib"), "there is no class 'jib', did you mean 'job'?"),
        (Progressed("x", 1.0), "there is no job 'x'"),
        (Confirmed("x", 1, 1), "there is no job 'x'"),
        (Confirmed("a", 9, 1), "job 'a' says that it uses 9 cores, it was granted 4"),
        (Finished("x"), "there is no job 'x'"),
        (WeightChanged("x", 2.0), "there is no job 'x'"),
        (ClassChanged("a", "jib"), "there is no class 'jib', did you mean 'job'?"),
        (PolicyChanged("whim"), "no policy is called 'whim'"),
        ("finished", "not an event: 'finished'"),
        (None, "not an event: None"),
    ],
)
def test_what_makes_no_sense_changes_nothing(event, reason):
    """Such an event leaves the state as it is, asks for nothing, and says why."""
    scheduler = Scheduler(one_class(), 4, "wham", unknown=None)
    scheduler.handle(Registered("a", "job"), 0.0)
    before = scheduler.state()
    assert scheduler.handle(event, 0.0) == []
    assert scheduler.refused.startswith(reason)
    assert scheduler.state() == before
    scheduler.handle(Tick(), 0.0)
    assert scheduler.refused == ""


def test_a_job_ends_once():
    """The second end of a job is refused."""
    scheduler = Scheduler(one_class(), 4)
    scheduler.handle(Registered("a", "job"), 0.0)
    scheduler.handle(Cancelled("a"), 1.0)
    assert scheduler.handle(Finished("a"), 2.0) == []
    assert scheduler.refused == "there is no job 'a'"
    assert scheduler.ended == {"finished": 0, "failed": 0, "cancelled": 1, "lost": 0}


@pytest.mark.parametrize(
    "policy", ["wham", "equi", "greedy", "srpt", "hesrpt", "pollux:period=0.3", "sia", "hell"]
)
def test_numbers_at_the_ends_of_their_range(policy):
    """Weights, sizes, units and ages of any magnitude neither raise an error nor give out more than n."""
    scheduler = Scheduler(paper_workload().at(4, 0.5), 4, policy)
    tiny, huge = 1.1e-100, 0.9e100
    now = 0.0
    for number, (weight, size, units, age) in enumerate(itertools.product((tiny, 1.0, huge), repeat=4)):
        now += 0.1
        job = str(number)
        event = Registered(
            job, f"class-{number % 3 + 1}", weight, units=units, size=size, age=age, work_done=age
        )
        confirm_all(scheduler, scheduler.handle(event, now), now)
        scheduler.handle(Progressed(job, units), now)
        confirm_all(scheduler, scheduler.handle(Tick(), now), now)
        assert sum(told(scheduler).values()) <= 4
        scheduler.state()
        if number > 5:
            confirm_all(scheduler, scheduler.handle(Finished(str(number - 6)), now), now)


def test_time_never_goes_back():
    """An earlier time, NaN, infinity or one beyond all clocks counts as the time of the last event."""
    scheduler = Scheduler(one_class(), 4)
    for now in (5.0, 3.0, math.nan, math.inf, -math.inf, 1e300):
        scheduler.handle(Tick(), now)
        assert scheduler.now == 5.0


def test_without_a_workload_every_class_is_welcome():
    """Classes that are not described start from the stated prior, up to a hundred of them."""
    scheduler = Scheduler(None, 8, "wham")
    assert scheduler.handle(Registered("a", "sweep"), 0.0) == [Start("a", 8, 1)]
    assert float(scheduler.beliefs.workload.speedups[1](4)) == pytest.approx(4 / (0.05 * 4 + 0.95))
    for number in range(200):
        scheduler.handle(Registered(str(number), f"class {number}"), 1.0)
    assert scheduler.refused == ("there is no class 'class 199', and 100 others have jobs: use one of them")
    assert len(scheduler.beliefs.workload.classes) == 100


def test_classes_without_jobs_make_room():
    """A new class takes the place of the one that was used longest ago, if no job is of it any more.

    Classes of the workload stay, and so do those of the jobs present. Of a class that was forgotten nothing
    is known when it comes again; what its jobs have cost and done is still accounted for.
    """
    scheduler = Scheduler(one_class(), 4, "equi")
    cost = CostSoFar(scheduler)
    handle = cost.watching(scheduler.handle)

    def run(job, job_class, now):
        confirm_all(scheduler, handle(Registered(job, job_class, units=100.0), now), now, handle)
        assert not scheduler.refused

    run("stays", "kept", 0.0)
    run("a", "taught", 0.0)
    for cores, now in ((1, 1.0), (4, 5.0), (1, 9.0)):
        confirm_all(scheduler, handle(CoresChanged(2 * cores), now), now, handle)
        for step in (1.0, 2.0, 3.0):
            handle(Progressed("a", 20.0 * step * now), now + step)
    handle(Finished("a"), 13.0)
    before = cost.account(14.0)
    taught = scheduler.beliefs.workload.class_names.index("taught")
    assert scheduler.beliefs.learner(taught) is not None
    for number in range(250):
        now = 20.0 + number
        run(str(number), f"class {number}", now)
        handle(Finished(str(number)), now + 0.5)
    names = scheduler.beliefs.workload.class_names
    assert len(names) == 100
    assert set(names) == {"job", "kept", *(f"class {number}" for number in range(152, 250))}
    assert set(scheduler.state()["speedups"]) == set(names)
    run("again", "taught", 300.0)
    again = scheduler.beliefs.workload.class_names.index("taught")
    assert scheduler.beliefs.learner(again) is None
    assert scheduler.beliefs.workload.class_names.index("kept") == 1
    assert scheduler.table[CLASS][scheduler.table.row_of["stays"]] == 1
    run("152", "class 152", 301.0)  # it had a job longest ago, and is in use now
    run("new", "class 250", 302.0)
    assert "class 152" in scheduler.beliefs.workload.class_names
    account = cost.account(303.0)
    of_taught = {place: spent for place, spent in before.spent.items() if place[0][0] == "taught"}
    assert of_taught
    assert all(account.spent[place] >= spent for place, spent in of_taught.items())
    assert 0.0 < account.bound() <= account.area


def test_cores_that_come_and_go():
    """With no core left all jobs stop; when cores return they go on."""
    scheduler = Scheduler(one_class(), 4, "equi")
    confirm_all(scheduler, scheduler.handle(Registered("a", "job"), 0.0), 0.0)
    assert scheduler.handle(CoresChanged(0), 1.0) == [Stop("a", 0, 2)]
    scheduler.handle(Confirmed("a", 0, 2), 1.0)
    assert scheduler.handle(CoresChanged(7), 2.0) == [Grant("a", 7, 3)]


def test_a_moldable_job_whose_width_is_gone():
    """It has chosen four cores for good; while there are two it waits, and then goes on."""
    scheduler = Scheduler(one_class(shape="moldable"), 4, "wham")
    confirm_all(scheduler, scheduler.handle(Registered("a", "job"), 0.0), 0.0)
    assert told(scheduler) == {"a": 4}
    for moment, cores in enumerate((2, 2, 0, 1)):
        confirm_all(scheduler, scheduler.handle(CoresChanged(cores), moment), moment)
        assert told(scheduler) == {"a": 0}
    assert scheduler.handle(CoresChanged(4), 9.0) == [Grant("a", 4, 3)]


def test_a_policy_without_a_plan_does_not_stop_the_machine():
    """FW-CAM has no plan for too few cores: they are divided equally, and the problem is said."""
    workload = paper_workload().at(64, 0.4)
    with pytest.raises(InfeasibleError):
        Scheduler(workload, 20, "fw-cam")
    scheduler = Scheduler(workload, 64, "fw-cam")
    for name in "abc":
        confirm_all(scheduler, scheduler.handle(Registered(name, "class-1"), 0.0), 0.0)
    confirm_all(scheduler, scheduler.handle(CoresChanged(6), 1.0), 1.0)
    assert told(scheduler) == {"a": 2, "b": 2, "c": 2}
    assert "fw-cam" in scheduler.problem
    confirm_all(scheduler, scheduler.handle(CoresChanged(64), 2.0), 2.0)
    assert scheduler.problem == ""


def test_weights_and_classes_change_the_division():
    """A heavier job gets more cores under WHAM; so does one of a class that speeds up better."""
    scheduler = Scheduler(paper_workload().at(16, 0.5), 16, "wham")
    for name in "ab":
        confirm_all(scheduler, scheduler.handle(Registered(name, "class-2"), 0.0), 0.0)
    assert told(scheduler) == {"a": 8, "b": 8}
    confirm_all(scheduler, scheduler.handle(WeightChanged("a", 4.0), 1.0), 1.0)
    assert told(scheduler)["a"] > 8
    confirm_all(scheduler, scheduler.handle(WeightChanged("a", 1.0), 2.0), 2.0)
    confirm_all(scheduler, scheduler.handle(ClassChanged("b", "class-1"), 3.0), 3.0)
    assert told(scheduler)["a"] != 8


def test_rounds():
    """A policy that decides in rounds is asked at multiples of its period only; `wake_at` says when."""
    scheduler = Scheduler(one_class(), 4, "pollux:period=2")
    assert scheduler.wake_at is None
    assert scheduler.handle(Registered("a", "job", size=3.0), 0.5) == []
    assert scheduler.wake_at == 2.0
    assert scheduler.handle(Tick(), 1.9) == []
    assert isinstance(scheduler.handle(Tick(), 2.0)[0], Start)
    assert scheduler.wake_at == 4.0
    scheduler.handle(Tick(), 1e9 + 0.5)
    assert scheduler.wake_at == 1e9 + 2.0


def test_quiet_times():
    """A job that was resized is left in peace for as long as its class says; then the policy is asked."""
    scheduler = Scheduler(one_class(quiet=5.0), 4, "equi")
    confirm_all(scheduler, scheduler.handle(Registered("a", "job"), 0.0), 0.0)
    confirm_all(scheduler, scheduler.handle(Registered("b", "job"), 1.0), 1.0)
    assert told(scheduler) == {"a": 2, "b": 2}
    assert scheduler.wake_at == 6.0
    confirm_all(scheduler, scheduler.handle(Finished("b"), 2.0), 2.0)
    assert told(scheduler) == {"a": 2}
    assert scheduler.handle(Tick(), 6.0) == [Grant("a", 4, 3)]


def test_a_broker_that_was_started_again():
    """Jobs that say how many cores they use keep them; one whose cores are gone is told to stop."""
    scheduler = Scheduler(one_class(), 4, "equi")
    assert scheduler.handle(Registered("a", "job", cores=1, age=9.0, work_done=3.0), 0.0) == []
    assert scheduler.handle(Registered("b", "job", cores=3), 0.0) == []
    assert scheduler.handle(Registered("c", "job", cores=2), 0.0) == [Stop("c", 0, 1)]
    assert told(scheduler) == {"a": 1, "b": 3, "c": 0}
    confirm_all(scheduler, [Stop("c", 0, 1), *scheduler.handle(Tick(), 1.0)], 1.0)
    assert told(scheduler) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("policy", ["equi", "fcfs"])
def test_no_job_waits_for_ever(policy):
    """In an endless overload a job has cores after as many departures as there were jobs before it."""
    scheduler = Scheduler(one_class(), 3, policy)
    clock = 0.0
    for number in range(60):
        clock += 1.0
        confirm_all(scheduler, scheduler.handle(Registered(f"{number:03}", "job"), clock), clock)
        if number >= 10:
            done = min(job for job, cores in told(scheduler).items() if cores)
            confirm_all(scheduler, scheduler.handle(Finished(done), clock), clock)
        served = {job for job, cores in told(scheduler).items() if cores}
        assert min(scheduler.ledger.accounts) in served


def test_wham_serves_all_when_no_more_come():
    """Under WHAM each of 20 jobs on 3 cores has cores within 20 departures once arrivals end."""
    scheduler = Scheduler(one_class(), 3, "wham")
    for number in range(20):
        confirm_all(scheduler, scheduler.handle(Registered(str(number), "job", size=1.0 + number), 0.0), 0.0)
    served = set()
    for moment in range(20):
        now = {job for job, cores in told(scheduler).items() if cores}
        assert now
        served |= now
        confirm_all(scheduler, scheduler.handle(Finished(min(now)), 1.0 + moment), 1.0 + moment)
    assert len(served) == 20
    assert scheduler.ended["finished"] == 20


def test_documents_of_events():
    """Every event is read back as it was written; what is no event is refused with the place named."""
    for event in (
        Registered("a", "job", 2.0, units=4.0, never_pause=True),
        Progressed("a", 1.0),
        Confirmed("a", 2, 1),
        CoresChanged(0),
        PolicyChanged("wham"),
        Tick(),
    ):
        assert Event.of(event.to_dict()) == event
    for document in ({}, 3, {"kind": "finish", "job": "a"}, {"kind": "finished"},
                     {"kind": "finished", "job": 3},
                     {"kind": "confirmed", "job": "a", "cores": -1, "number": 1},
                     {"kind": "progressed", "job": "a", "units_done": math.nan},
                     {"kind": "registered", "job": "", "job_class": "job"},
                     {"kind": "registered", "job": "a", "job_class": "job", "weight": math.inf}):  # fmt: skip
        with pytest.raises(ParameterError):
            Event.of(document)


@pytest.mark.parametrize("policy", ["wham", "equi", "greedy", "fixed-width", "hesrpt", "pollux:period=0.3"])
def test_no_job_has_more_cores_than_it_takes(policy):
    """Whatever the policy, a job has at most what it takes; the others have the rest, and no core is idle."""
    scheduler = Scheduler(one_class(), 16, policy)
    for name, most in (("a", 2), ("b", 1), ("c", 5), ("d", None)):
        prompt(scheduler, Registered(name, "job", max_cores=most), 0.0)
    prompt(scheduler, Tick(), 1.0)
    found = told(scheduler)
    assert all(found[name] <= most for name, most in (("a", 2), ("b", 1), ("c", 5))), found
    assert policy == "fixed-width" or sum(found.values()) == 16, found


@pytest.mark.parametrize("policy", ["wham", "greedy"])
@pytest.mark.parametrize("cores", [3, 8, 20])
def test_the_most_of_a_job_is_as_that_of_a_class(policy, cores):
    """Jobs that take at most three cores get what jobs of a class whose widths end there get."""
    size, poisson = {"kind": "exponential", "mean": 2.0}, {"kind": "poisson", "rate": 0.1}
    described = {"arrivals": poisson, "size": size, "speedup": {"kind": "amdahl", "sequential": 0.1}}
    free, capped = {"name": "free", **described}, {"name": "capped", "widths": {"max": 3}, **described}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        by_class = Workload.from_dict({"name": "w", "classes": [{**free, "widths": "whole"}, capped]})
        by_job = Workload.from_dict({"name": "w", "classes": [free, {"name": "capped", **described}]})
    found = []
    for workload, most in ((by_class, None), (by_job, 3)):
        scheduler = Scheduler(workload, cores, policy)
        for i in range(4):
            name, limit = ("capped", most) if i % 2 else ("free", None)
            prompt(scheduler, Registered(f"j{i}", name, size=5.0, max_cores=limit), 0.0)
        found.append(told(scheduler))
    assert found[0] == found[1]


def test_the_most_of_a_job_among_the_widths_of_its_class():
    """Of the widths 2, 4 and 8 a job that takes at most 5 cores gets 4; one that takes 1 is refused."""
    described = {"arrivals": {"kind": "poisson", "rate": 0.1}, "size": {"kind": "exponential", "mean": 2.0}}
    row = {"name": "job", "widths": [2, 4, 8], "speedup": {"kind": "amdahl", "sequential": 0.1}, **described}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        scheduler = Scheduler(Workload.from_dict({"name": "w", "classes": [row]}), 16, "wham")
    prompt(scheduler, Registered("a", "job", max_cores=5), 0.0)
    assert told(scheduler) == {"a": 4}
    assert scheduler.handle(Registered("b", "job", max_cores=1), 0.0) == []
    assert scheduler.refused == "job 'b' takes at most 1 cores, and its class at least 2"


@pytest.mark.parametrize("limit", [0, 3])
def test_few_jobs_pause(limit):
    """However many jobs come, at most so many started ones have no core; heavier newcomers start first."""
    scheduler = Scheduler(None, 2, "wham", most_paused=limit)
    for i in range(40):
        prompt(scheduler, Registered(f"j{i}", "x", weight=1.0 + (i == 39)), float(i))
    most = 0
    for i in range(40):
        accounts = scheduler.ledger.accounts
        paused = [job for job, account in accounts.items() if account.started and not account.granted]
        most = max(most, len(paused))
        assert scheduler.ledger.granted == 2, "no core is idle"
        if i == limit + 2:
            assert accounts.get("j39") is None or accounts["j39"].started
        running = next(job for job, account in accounts.items() if account.granted)
        prompt(scheduler, Finished(running), 100.0 + 10.0 * i)
    assert most == limit


def prompt(scheduler, event, now):
    """An event, whose actions are carried out at once."""
    actions = scheduler.handle(event, now)
    while actions:
        action = actions.pop(0)
        actions += scheduler.handle(Confirmed(action.job, action.cores, action.number), now)
