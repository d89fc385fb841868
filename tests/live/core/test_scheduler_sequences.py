"""Any sequence of events, from clients that are late, twice, lying or gone: what holds all the same."""

from __future__ import annotations

import itertools
import json
import math
import random
import warnings

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from malleable.live.core import events as E  # noqa: N812 - as in the scheduler
from malleable.live.core.actions import Grant, Shrink, Start, Stop
from malleable.live.core.job_table import MEMORY, MOST, NEVER_PAUSE, STARTED, TARGET
from malleable.live.core.journal import Entry, Journal, replay
from malleable.live.core.scheduler import Scheduler
from malleable.model import ConditionWarning, Workload, paper_workload
from support.live_clients import Client

POLICIES = ("wham", "equi", "greedy", "srpt", "pollux:period=2", "fixed-width")
CORES = (1, 2, 5, 8)
MEMORY_IN_ALL = 10.0
JOBS = tuple("abcdefgh")
job_names = st.sampled_from(JOBS)
few = st.integers(0, 9)
ENDS = (E.Finished, E.Failed, E.Cancelled, E.Lost)
ends = st.sampled_from(ENDS)
WORK = (None, 0.5, 3.0, 20.0)
work = st.sampled_from(WORK)
EVERY_JOB = [*itertools.product(
    range(1, 6), (None, 0.2, 5.0), WORK, WORK, (0.0, 0.0, 4.0, 8.0, 11.0), (False, True), (0, 0, 0, 2),
    (None, 2, 3),
)]  # fmt: skip
"""Class, weight, units, size, memory, whether it may be paused, cores that it uses, and the most it takes."""
some_jobs = st.sampled_from(EVERY_JOB)
"""One draw instead of eight: most of the time of these tests is Hypothesis's own."""


def demanding():
    """A class for each thing that a machine may demand."""
    size, poisson = {"kind": "exponential", "mean": 2.0}, {"kind": "poisson", "rate": 0.2}
    common = {"arrivals": poisson, "size": size, "speedup": {"kind": "amdahl", "sequential": 0.1}}
    rows = [
        {"name": "class-1", "widths": [1, 2, 4]},
        {"name": "class-2", "shape": "rigid", "width": 2},
        {"name": "class-3", "quiet": 1.5, "resize": {"pause": 0.3, "work": 0.1}},
        {"name": "class-4", "shape": "moldable"},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload.from_dict({"name": "demanding", "classes": [{**common, **row} for row in rows]})


WORKLOADS = {"paper": paper_workload().at(8, 0.5), "demanding": demanding(), "unknown": None}


class AnySequence(RuleBasedStateMachine):
    """Clients in all states of delay, and events that make no sense."""

    @initialize(
        kind=st.sampled_from(sorted(WORKLOADS)),
        policy=st.sampled_from(POLICIES[:5]),
        cores=st.sampled_from(CORES[1:]),
        paused=st.sampled_from([math.inf, 0, 1]),
    )
    def start(self, kind, policy, cores, paused):
        self.made = (WORKLOADS[kind], cores, policy, paused)
        self.journal = Journal(self.new())
        self.now, self.clients, self.accepted, self.ends = 0.0, {}, 0, 0
        self.granted, self.worst = 0, 0

    def new(self):
        workload, cores, policy, paused = self.made
        return Scheduler(workload, cores, policy, memory=MEMORY_IN_ALL, most_paused=paused)

    @property
    def scheduler(self):
        return self.journal.scheduler

    def pick(self, which):
        """A job that is there, by its number or its name; now and then one that is not."""
        if isinstance(which, str) or which == 9 or not self.clients:
            return which if isinstance(which, str) else "x"
        return sorted(self.clients)[which % len(self.clients)]

    def tell(self, event, now=None):
        """One event; its actions go to the clients, who may use what they are sent at once."""
        before = {job: a.granted for job, a in self.scheduler.ledger.accounts.items()}
        actions = self.journal.handle(event, self.now if now is None else now)
        assert not (self.scheduler.refused and actions)
        narrowing = [isinstance(one, Shrink | Stop) for one in actions]
        assert narrowing == sorted(narrowing, reverse=True), "shrinks come first"
        for action in actions:
            account = self.scheduler.ledger.accounts[action.job]
            assert account.granted >= action.cores
            if isinstance(action, Start | Grant) and action.cores > before.get(action.job, 0):
                assert self.scheduler.ledger.free >= 0
            if action.job in self.clients:
                self.clients[action.job].inbox.append(action)
        return actions

    @rule(job=job_names, known=some_jobs)
    def register(self, job, known):
        number, weight, units, size, memory, never, used, most = known
        used = 0 if memory else used
        ledger = self.scheduler.ledger
        if used > max(ledger.free + ledger.expected.get(job, 0), 0):
            used = 0  # a machine on which more is in use than there is would be no fault of the ledger
        known = job in self.clients
        client = self.clients.setdefault(job, Client(job, used))
        self.tell(
            E.Registered(
                job,
                f"class-{number}",
                weight,
                units=units,
                size=size,
                memory=memory,
                never_pause=never,
                cores=used,
                max_cores=most,
            )
        )
        if known or memory > MEMORY_IN_ALL:
            assert self.scheduler.refused
            self.clients = {j: c for j, c in self.clients.items() if known or j != job}
        elif not self.scheduler.refused:
            self.accepted += 1
        else:
            del self.clients[client.job]

    @rule(job=job_names, cores=few)
    def expect(self, job, cores):
        self.tell(E.Expected(job, cores))
        assert bool(self.scheduler.refused) == (job in self.clients)

    @rule(which=few, partly=st.booleans())
    def carry_out(self, which, partly):
        job = self.pick(which)
        if job in self.clients:
            self.clients[job].carry_out(partly=partly)

    @rule(which=few)
    def answer(self, which):
        job = self.pick(which)
        if job in self.clients and self.clients[job].outbox:
            self.tell(self.clients[job].answer())
            if self.clients[job].honest:
                assert not self.scheduler.refused

    @rule(which=few)
    def act_and_answer(self, which):
        self.carry_out(which, partly=False)
        self.answer(which)

    @rule(which=few, position=few)
    def answer_again(self, which, position):
        job = self.pick(which)
        if job in self.clients and self.clients[job].sent:
            self.tell(self.clients[job].sent[position % len(self.clients[job].sent)])

    @rule(which=few, cores=few, number=few)
    def lie(self, which, cores, number):
        job = self.pick(which)
        if job in self.clients:
            self.clients[job].honest = False
        self.tell(E.Confirmed(job, cores, number))
        assert self.scheduler.refused or job in self.clients

    @rule(which=few, done=st.floats(0.0, 30.0), units=work)
    def progress(self, which, done, units):
        job = self.pick(which)
        self.tell(E.Progressed(job, done, units))
        assert self.scheduler.refused or job in self.clients

    @rule(which=few, end=ends)
    def end(self, which, end):
        job = self.pick(which)
        known = job in self.clients
        self.clients.pop(job, None)
        self.tell(end(job))
        assert known == (not self.scheduler.refused)
        self.ends += known

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(now=st.sampled_from([None, -3.0, math.nan, math.inf]))
    def tick(self, now):
        self.tell(E.Tick(), now)

    @rule(cores=st.sampled_from((0, *CORES)))
    def change_cores(self, cores):
        self.tell(E.CoresChanged(cores))

    @rule(policy=st.sampled_from((*POLICIES, "nonsense", "wham:x=3")))
    def change_policy(self, policy):
        self.tell(E.PolicyChanged(policy))

    @rule(which=few, weight=st.sampled_from([0.1, 1.0, 9.0]), number=st.integers(1, 5))
    def change_job(self, which, weight, number):
        job = self.pick(which)
        self.tell(E.WeightChanged(job, weight))
        self.tell(E.ClassChanged(job, f"class-{number}"))

    @invariant()
    def cores_are_granted_once(self):
        """Σ granted and kept ≤ n; above it only because n fell, and then it does not rise."""
        ledger = self.scheduler.ledger
        granted = sum(account.granted for account in ledger.accounts.values())
        assert granted == ledger.granted
        assert not ledger.expected.keys() & ledger.accounts.keys()
        granted += sum(ledger.expected.values())
        assert granted <= max(ledger.cores, self.granted)
        self.granted = granted
        for account in ledger.accounts.values():
            assert 0 <= account.in_use <= account.granted
            assert account.told <= account.granted
        table = self.scheduler.table
        rows = table.rows()
        assert (table[TARGET][rows] <= table[MOST][rows]).all()

    @invariant()
    def cores_are_used_once(self):
        """Honest clients never use more than they are granted, however late they are."""
        for client in self.clients.values():
            if client.honest:
                assert client.may_use <= self.scheduler.ledger.accounts[client.job].granted

    @invariant()
    def jobs_end_once(self):
        present = set(self.scheduler.ledger.accounts)
        assert present == set(self.clients) == set(self.scheduler.table.row_of)
        assert self.accepted == len(present) + sum(self.scheduler.ended.values())
        assert self.ends == sum(self.scheduler.ended.values())

    @invariant()
    def promises_are_kept(self):
        """Memory is not promised twice, and a started job that must not be paused has a core."""
        table, scheduler = self.scheduler.table, self.scheduler
        rows = table.rows()
        assert table[MEMORY][rows][table[STARTED][rows] > 0.0].sum() <= MEMORY_IN_ALL
        never = rows[(table[NEVER_PAUSE][rows] > 0.0) & (table[STARTED][rows] > 0.0)]
        least = sum(scheduler.machine.least[scheduler.jobs.class_of(table.ids[row])] for row in never)
        plain = scheduler.machine.workload.plain and scheduler.machine.period == 0.0
        if plain and least <= scheduler.ledger.cores and not scheduler.problem:
            assert (table[TARGET][never] >= 1.0).all()

    def teardown(self):
        """Replayed, the journal gives the same state; and whatever happened, the jobs can all be finished."""
        if not hasattr(self, "journal"):
            return
        lines = [json.dumps(entry.to_dict()) for entry in self.journal.entries]
        again = replay([Entry.from_dict(json.loads(line)) for line in lines], self.new())
        assert again.state() == self.scheduler.state()
        self.drain()

    def drain(self):
        """Liars leave, the others become prompt; on 8 cores every job is served in the end."""
        for job in [job for job, client in self.clients.items() if not client.honest]:
            self.end(job, E.Lost)
        for job in [*self.scheduler.ledger.expected]:
            self.tell(E.Expected(job, 0))
        self.tell(E.PolicyChanged("equi"))
        self.tell(E.CoresChanged(8))
        for _ in range(len(self.clients)):
            self.deliver_all()
            for account in self.scheduler.ledger.accounts.values():
                assert account.target == account.told == account.granted == account.in_use
            running = [job for job, client in self.clients.items() if client.cores > 0]
            assert running, "jobs are there, all answers are in, and none has a core"
            self.end(running[0], E.Finished)
        assert not self.clients
        assert self.scheduler.ledger.granted == 0

    def deliver_all(self):
        while any(client.inbox or client.outbox for client in self.clients.values()):
            for job in list(self.clients):
                self.act_and_answer(job)


def explore(examples, steps):
    run_state_machine_as_test(
        AnySequence,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, database=None,
            suppress_health_check=list(HealthCheck), print_blob=False,
        ),
    )  # fmt: skip


RANDOM = {
    "register": lambda r: {"job": r.choice(JOBS), "known": r.choice(EVERY_JOB)},
    "expect": lambda r: {"job": r.choice(JOBS), "cores": r.randrange(10)},
    "carry_out": lambda r: {"which": r.randrange(10), "partly": r.random() < 0.5},
    "answer": lambda r: {"which": r.randrange(10)},
    "act_and_answer": lambda r: {"which": r.randrange(10)},
    "answer_again": lambda r: {"which": r.randrange(10), "position": r.randrange(10)},
    "lie": lambda r: {"which": r.randrange(10), "cores": r.randrange(10), "number": r.randrange(10)},
    "progress": lambda r: {"which": r.randrange(10), "done": 30.0 * r.random(), "units": r.choice(WORK)},
    "end": lambda r: {"which": r.randrange(10), "end": r.choice(ENDS)},
    "time_passes": lambda r: {"seconds": r.choice([0.1, 1.0, 5.0])},
    "tick": lambda r: {"now": r.choice([None, -3.0, math.nan, math.inf])},
    "change_cores": lambda r: {"cores": r.choice((0, *CORES))},
    "change_policy": lambda r: {"policy": r.choice((*POLICIES, "nonsense", "wham:x=3"))},
    "change_job": lambda r: {
        "which": r.randrange(10), "weight": r.choice([0.1, 1.0, 9.0]), "number": r.randint(1, 5),
    },
}  # fmt: skip
"""The rules with their arguments, drawn by Python: most of the time of Hypothesis is its own."""


@pytest.mark.parametrize(
    "seeds", [range(200), pytest.param(range(200, 2000), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_sequences_of_any_kind(seeds):
    """Whatever clients do: no core is granted twice, each job ends once, replay gives the same state."""
    assert {one.function.__name__ for one in AnySequence().rules} == set(RANDOM)
    for seed in seeds:
        source, machine = random.Random(seed), AnySequence()
        kind, policy = source.choice(sorted(WORKLOADS)), source.choice(POLICIES[:5])
        cores, paused = source.choice(CORES[1:]), source.choice([math.inf, 0, 1])
        said = [("start", {"kind": kind, "policy": policy, "cores": cores, "paused": paused})]
        for _ in range(10):
            # One in five is a job that comes: without jobs there is little to see.
            name = "register" if source.random() < 0.2 else source.choice(list(RANDOM))
            said.append((name, RANDOM[name](source)))
        try:
            for name, arguments in said:
                getattr(machine, name)(**arguments)
                for check in machine.invariants:
                    check.function(machine)
            machine.teardown()
        except Exception as error:
            raise AssertionError(f"sequence {seed}: {said}") from error


def test_a_few_sequences_that_are_made_short():
    """The same for a hundred sequences of Hypothesis, which finds a short one where any fails."""
    explore(100, 16)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_a_hundred_thousand_sequences(part):
    """The same for 100,000 longer sequences, in 20 parts."""
    explore(5000, 25)
