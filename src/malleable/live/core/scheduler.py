"""The scheduler: from what happens to what jobs are asked to do.

    handle(event, now) -> actions

No clock, no input or output, no threads, no randomness: the same events at the same times give the same
actions and the same state, so a journal of events is all there is to keep. Policies decide through
`live.core.decision`, cores change hands through `live.core.ledger`.

An event that makes no sense (a job that is unknown, a confirmation that cannot be true) changes nothing;
`refused` says why. A policy that raises an error does not stop the machine: cores are divided equally until
it works again, and `problem` says what is wrong.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import asdict, replace
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.catalog.spec import whole_number
from malleable.contracts import Policy
from malleable.engine.enforcement import blame_policy, label
from malleable.errors import InfeasibleError, MalleableError, UnstableError, did_you_mean
from malleable.live.core import events as E  # noqa: N812 - E.Registered reads like what it is
from malleable.live.core.admission import few_enough_paused, fits_in_memory, shown_memory
from malleable.live.core.core_price import CorePrice
from malleable.live.core.decision import Division, Machine
from malleable.live.core.estimates import beliefs_change
from malleable.live.core.fair_share import FairShares, Guarantee, Urgent
from malleable.live.core.job_table import (
    CALM,
    CLASS,
    KEPT,
    ON_HOLD,
    OWN_WEIGHT,
    RESTARTS,
    STARTED,
    TARGET,
    WAITS_SINCE,
    WEIGHT,
    JobTable,
)
from malleable.live.core.jobs_present import JobsPresent
from malleable.live.core.learned_sizes import ClassSeen, LearnedSizes
from malleable.live.core.ledger import Ledger
from malleable.live.core.unknown_jobs import UNKNOWN, unknown_workload
from malleable.policies.equi import Equi

if TYPE_CHECKING:
    from malleable.contracts import IntArray
    from malleable.live.core.actions import Action
    from malleable.live.core.beliefs import Beliefs
    from malleable.model import JobClass, Workload

LATEST = 1e12
"""Times after this are none: 30,000 years in seconds."""
MOST_CLASSES = 100
"""Classes beyond which one that a job brings along takes the place of one without jobs."""


class Supposed(NamedTuple):
    """A decision that was not made."""

    cores: dict[str, float]
    price: float | None
    behind: set[str]
    """Jobs that have fallen behind their fair share, and are served first."""
    allowed: set[str]
    """Jobs that are neither on hold nor wait for memory."""


class _RefusedError(Exception):
    """An event that changes nothing, and why."""


class Scheduler:
    """Divides whole cores among the jobs present, by a policy.

    `memory` is what there is for all jobs together. A job of a class that the workload does not have is taken
    for one like `unknown`, under the name of its class; with `unknown=None` it is refused. `learn` says
    whether speedups are learned from reported progress. No job is started while that would leave more than
    `most_paused` started ones without cores: they hold their memory. With a `guarantee` no job falls far
    behind its weighted equal share (`live.core.fair_share`), and decisions are made anew as what is believed
    of running jobs changes.
    """

    def __init__(
        self,
        workload: Workload | None,
        cores: int,
        policy: Policy | str = "wham",
        *,
        memory: float = inf,
        unknown: JobClass | None = UNKNOWN,
        learn: bool = True,
        most_paused: float = inf,
        guarantee: Guarantee | None = None,
    ) -> None:
        cores = whole_number("cores", cores, 1)
        self.now = 0.0
        self.refused = ""
        self.problem = ""
        self.price: float | None = None
        self.ended = dict.fromkeys(("finished", "failed", "cancelled", "lost"), 0)
        self.jobs = JobsPresent(workload or unknown_workload(), cores, learn=learn)
        self.ledger = Ledger(cores)
        self.shares = None if guarantee is None else FairShares(guarantee)
        self._look_at: float | None = None
        """When to look again, if that is known."""
        self._memory, self._unknown, self._most_paused = memory, unknown, most_paused
        self._arrivals = 0
        self._round = inf
        self._hopeless: Machine | None = None
        """A machine for which its policy has no plan."""
        self._classes = {name: i for i, name in enumerate(self.beliefs.workload.class_names)}
        """Their positions; those that jobs have brought along stand behind, the one used last at the end."""
        self._described = len(self._classes)
        chosen = Policy.of(policy)
        self._label = label(policy, chosen)
        machine = Machine(self.beliefs.workload, cores, cores, chosen.without_rates(), self.beliefs.sizes)
        self.machine = machine.checked(self._label)

    @property
    def policy_name(self) -> str:
        """The policy as it was named, with its options."""
        return self._label

    @property
    def table(self) -> JobTable:
        """The jobs present, as numbers."""
        return self.jobs.table

    @property
    def beliefs(self) -> Beliefs:
        """The workload as it is believed to be."""
        return self.jobs.beliefs

    def handle(self, event: Any, now: float) -> list[Action]:
        """What the jobs are to do after this event; a time before the last one counts as that."""
        if self.now < now <= LATEST:
            self.now = float(now)
        self.refused = ""
        self._look_at = None
        if self.shares is not None:
            self.shares.pass_time(self.table, self.now)
        try:
            actions: list[Action] = self._handler(event)(event)
        except _RefusedError as reason:
            self.refused = str(reason)
            return []
        return actions

    def _handler(self, event: Any) -> Any:
        """The method of an event's kind."""
        if type(event) not in E.KINDS.values():
            raise _RefusedError(f"not an event: {event!r:.60}")
        return getattr(self, f"_{event.kind}")

    def load_machine_code(self) -> None:
        """Take the time to compile the policy now, and not at some decision about many jobs."""
        self.machine.load_machine_code()

    @property
    def wake_at(self) -> float | None:
        """When a `Tick` is due at the latest.

        That is a round of the policy, the end of a quiet time, a job that becomes urgent or has been served,
        or a running job of which something else is believed by then.
        """
        if self.machine.period > 0.0:
            return self._round if len(self.table) else None
        if self._look_at is None:
            self._look_at = self._next_look()
        return self._look_at if self._look_at < inf else None

    def _next_look(self) -> float:
        rows = self.table.rows()
        if len(rows) == 0:
            return inf
        soonest = inf
        if not self.machine.workload.plain:
            calm = self.table[CALM][rows]
            soonest = min(calm[calm > self.now].tolist(), default=inf)
        if self.shares is None:
            return soonest
        soonest = min(soonest, self.shares.look_at(self.table, rows, self.now))
        if len(rows) == 1:
            return soonest
        quantum = self.shares.guarantee.quantum
        return min(soonest, beliefs_change(self.table, rows, self.now, self.beliefs.sizes, quantum))

    # What happens, event by event.

    def _registered(self, event: E.Registered) -> list[Action]:
        if event.job in self.table:
            raise _RefusedError(f"job {event.job!r} is there already")
        runs = event.started or event.cores > 0
        if event.memory > self._memory and not runs:  # what runs has its memory: no other is started then
            raise _RefusedError(
                f"job {event.job!r} needs {shown_memory(event.memory)} of memory, "
                f"and there are {shown_memory(self._memory)} in all"
            )
        i = self._class_index(event.job_class)
        least = int(self.machine.least[i])
        if event.max_cores is not None and event.max_cores < least and not runs:
            raise _RefusedError(
                f"job {event.job!r} takes at most {event.max_cores} cores, and its class at least {least}"
            )
        self._arrivals += 1
        at_once = self.machine.at_once[i]
        actions = self.ledger.open(event.job, self._arrivals, at_once=at_once, in_use=event.cores)
        self.jobs.add(event, i, self.ledger.accounts[event.job].in_use, self.now)
        if len(self.table) == 1:
            self._round = self._next_round()
        if event.cores > 0:
            # Others that were running may be on their way: who comes first must not get their cores.
            return actions
        return actions + self._decide_unless_in_rounds()

    def _expected(self, event: E.Expected) -> list[Action]:
        if event.job in self.table:
            raise _RefusedError(f"job {event.job!r} is there already")
        self.ledger.expect(event.job, event.cores)
        return [] if event.cores else self._decide_unless_in_rounds()

    def _progressed(self, event: E.Progressed) -> list[Action]:
        self._check_job(event.job)
        before = self.jobs.units_done(event.job)
        if event.units_done < before:
            raise _RefusedError(
                f"job {event.job!r} had done {before:g} units before, not {event.units_done:g}"
            )
        cores = self.ledger.accounts[event.job].in_use
        if self.jobs.progress(event.job, event.units_done, event.units, cores, self.now):
            self.machine = replace(self.machine, workload=self.beliefs.workload)
            in_use = {job: account.in_use for job, account in self.ledger.accounts.items()}
            self.jobs.change_speeds(in_use, self.now)
        return []

    def _confirmed(self, event: E.Confirmed) -> list[Action]:
        complaint = self.ledger.complaint(event.job, event.cores, event.number)
        if complaint:
            raise _RefusedError(complaint)
        before = self.ledger.accounts[event.job].in_use
        if event.cores != before:
            self.jobs.change_width(event.job, before, event.cores, self.machine, self.now)
        return self.ledger.confirm(event.job, event.cores, event.number)

    def _ended(self, event: E.Ended) -> list[Action]:
        self._check_job(event.job)
        if isinstance(event, E.Withdrawn):
            self.jobs.remove(event.job)
        else:
            self.jobs.end(event.job, self.now, finished=isinstance(event, E.Finished))
            self.machine.price.job_ended(self.now)
        self.ledger.close(event.job)
        if event.kind in self.ended:
            self.ended[event.kind] += 1
        return self._decide_unless_in_rounds()

    _finished = _failed = _cancelled = _withdrawn = _lost = _ended

    def _weight_changed(self, event: E.WeightChanged) -> list[Action]:
        self._check_job(event.job)
        row = self.table.row_of[event.job]
        self.table[WEIGHT][row], self.table[OWN_WEIGHT][row] = event.weight, 1.0
        return self._decide_unless_in_rounds()

    def _class_changed(self, event: E.ClassChanged) -> list[Action]:
        self._check_job(event.job)
        i, account = self._class_index(event.job_class), self.ledger.accounts[event.job]
        self.jobs.change_class(event.job, i, account.in_use, self.now)
        account.at_once = self.machine.at_once[i]
        return self._decide_unless_in_rounds()

    def _held(self, event: E.Held) -> list[Action]:
        self._check_job(event.job)
        row = self.table.row_of[event.job]
        self.table[ON_HOLD][row], self.table[TARGET][row] = 1.0, 0.0
        return self.ledger.retarget({event.job: 0}) + self._decide_unless_in_rounds()

    def _resumed(self, event: E.Resumed) -> list[Action]:
        self._check_job(event.job)
        self.table[ON_HOLD][self.table.row_of[event.job]] = 0.0
        return self._decide_unless_in_rounds()

    def _cores_changed(self, event: E.CoresChanged) -> list[Action]:
        self.machine = replace(self.machine, cores=event.cores, most=max(event.cores, self.machine.most))
        self.ledger.cores = event.cores
        return self._decide()

    def _policy_changed(self, event: E.PolicyChanged) -> list[Action]:
        try:
            chosen = Policy.of(event.policy)
            name = label(event.policy, chosen)
            self.machine = replace(self.machine, policy=chosen.without_rates()).checked(name)
        except MalleableError as error:
            raise _RefusedError(str(error)) from None
        self._label, self._round = name, self._next_round()
        return self._decide()

    def _tick(self, _event: E.Tick) -> list[Action]:
        period = self.machine.period
        if period > 0.0:
            if self.now < self._round:
                return []
            self._round += period
            if self._round <= self.now:  # rounds were missed
                self._round = (floor(self.now / period) + 1) * period
        return self._decide()

    # Decisions.

    def _next_round(self) -> float:
        """Rounds happen at multiples of the policy's period, as in the simulator."""
        period = self.machine.period
        return ceil(self.now / period) * period if period > 0.0 else inf

    def _decide_unless_in_rounds(self) -> list[Action]:
        if self.machine.period > 0.0:
            self._candidates()
            return self.ledger.hand_out()
        return self._decide()

    def _candidates(self) -> IntArray:
        """The jobs that may have cores, all of which have a share from now on."""
        rows: IntArray = self.table.rows()
        rows = rows[self.table[ON_HOLD][rows] == 0.0]
        rows = rows[fits_in_memory(self.table, rows, self._memory)]
        if self.shares is not None:
            self.shares.divide(self.table, rows, self.machine.cores, self.beliefs.workload)
        return rows

    def _decide(self) -> list[Action]:
        """Ask the policy, note what changes as the simulator does, and tell the ledger."""
        table, rows = self.table, self._candidates()
        rows, found = self._divide_among_few(rows)
        self.price = found.price
        self.machine.price.decided(found.price, self.now)
        changed = found.cores != table[TARGET][rows]
        widths, rows = found.cores[changed], rows[changed]
        table[TARGET][rows] = widths
        served = rows[widths > 0.0]
        table[WAITS_SINCE][rows[widths == 0.0]] = self.now
        resized = served[table[STARTED][served] > 0.0]
        table[RESTARTS][resized] += 1.0
        table[CALM][resized] = self.now + self.machine.quiet[table[CLASS][resized].astype(np.intp)]
        table[STARTED][served] = 1.0
        table[KEPT][served] = widths[widths > 0.0]
        named = (table.ids[row] for row in rows.tolist())
        return self.ledger.retarget(dict(zip(named, widths.astype(int).tolist(), strict=True)))

    def _divide_among_few(self, rows: IntArray) -> tuple[IntArray, Division]:
        """A division that does not start jobs at the price of too many that pause, and whom it is among."""
        found, limit = self._divide(rows), self._most_paused
        for most_started in (limit + self.machine.cores, 0.0):
            allowed = few_enough_paused(self.table, rows, found.cores, limit, most_started)
            if allowed is None:
                break
            fewer = self._divide(rows[allowed])
            if not fewer.cores.any():  # none of those that pause can use what there is
                break
            rows, found = rows[allowed], fewer
        return rows, found

    def _divide(self, rows: IntArray) -> Division:
        """The policy's division of the cores; an equal one while the policy cannot say."""
        if self._hopeless is self.machine:
            return self._divide_equally(rows)
        self.problem = ""
        try:
            with blame_policy(self.machine.policy, self._label):
                return self.machine.divide(self.table, rows, self.now, self._urgent(rows))
        except MalleableError as error:
            self.problem = str(error)
            # To find that there is no plan, and what would have one, takes long: not again for every job.
            self._hopeless = self.machine if isinstance(error, InfeasibleError | UnstableError) else None
        return self._divide_equally(rows)

    def _urgent(self, rows: IntArray) -> Urgent | None:
        """Who has to be served now, to keep the guarantee."""
        if self.shares is None or self.machine.period > 0.0:
            return None
        return self.shares.urgent(self.table, rows, self.machine.cores)

    def _divide_equally(self, rows: IntArray) -> Division:
        try:
            return replace(self.machine, policy=Equi()).divide(self.table, rows, self.now, self._urgent(rows))
        except MalleableError:  # no class has a width that fits: what runs goes on
            held = self.table[TARGET][rows]
            return Division(np.where(np.cumsum(held) <= self.machine.cores, held, 0.0), None)

    def supposed(self, cores: int, without: str | None = None) -> Supposed:
        """What a decision would be now on so many cores, one of the jobs not being there; nothing changes."""
        machine = replace(self.machine, cores=cores, most=max(cores, self.machine.most))
        other, jobs = copy(self), copy(self.jobs)
        jobs.table = self.table.copy()
        if without is not None:
            jobs.table.remove(without)
        hopeless = machine if self._hopeless is self.machine else None
        other.__dict__.update(jobs=jobs, machine=machine, _hopeless=hopeless)
        return other.would_decide()

    def would_decide(self) -> Supposed:
        """Decide and tell no job; fair shares are divided all the same, so that it is for copies."""
        table, allowed = self.table, self._candidates()
        urgent = self._urgent(allowed)
        rows, found = self._divide_among_few(allowed)

        def names(some: IntArray) -> list[str]:
            return [table.ids[row] for row in some.tolist()]

        cores = dict(zip(names(rows), found.cores.tolist(), strict=True))
        behind = set() if urgent is None else set(names(allowed[urgent.cores > 0.0]))
        return Supposed(cores, found.price, behind, set(names(allowed)))

    # What is known of jobs and classes.

    def _check_job(self, job: str) -> None:
        if job not in self.table:
            raise _RefusedError(f"there is no job {job!r}")

    def _class_index(self, name: str) -> int:
        """The position of a class; one that is new is like the unknown one."""
        if name not in self._classes:
            if self._unknown is None:
                raise _RefusedError(f"there is no class {name!r}, {did_you_mean(name, self._classes)}")
            self._classes[name] = self._bring_along(replace(self._unknown, name=name))
            self.machine = replace(self.machine, workload=self.beliefs.workload)
        index = self._classes[name]
        if index >= self._described:
            self._classes[name] = self._classes.pop(name)
        return index

    def _bring_along(self, job_class: JobClass) -> int:
        """A position for a class that the workload does not have: a new one, or that of one without jobs."""
        if len(self._classes) < max(MOST_CLASSES, self._described):
            return self.beliefs.add_class(job_class)
        used = set(self.table[CLASS][self.table.rows()].tolist())
        idle = [name for name, i in self._classes.items() if i >= self._described and i not in used]
        if not idle:
            others = f"{len(self._classes)} others have jobs: use one of them"
            raise _RefusedError(f"there is no class {job_class.name!r}, and {others}")
        index = self._classes.pop(idle[0])
        self.jobs.replace_class(index, job_class)
        return index

    def learned(self) -> dict[str, Any]:
        """What is to outlive this scheduler: sizes by class, and the price of a core."""
        sizes = self.beliefs.sizes
        seen = sizes.seen if isinstance(sizes, LearnedSizes) else []
        classes = {name: one.to_dict() for name, one in zip(self._classes, seen, strict=False)}
        return {"classes": classes, "core_price": self.machine.price.to_list()}

    def recall(self, document: Any) -> None:
        """Take over what an earlier scheduler has learned; a ValueError if the document is damaged."""
        if not isinstance(document, dict) or not isinstance(document.get("classes"), dict):
            raise ValueError("not a table of classes")  # noqa: TRY004 - the document is wrong, not the call
        found = {name: ClassSeen.from_dict(one) for name, one in document["classes"].items()}
        price = CorePrice.from_list(document.get("core_price"))
        sizes = self.beliefs.sizes
        if not isinstance(sizes, LearnedSizes):
            return
        for name, seen in found.items():
            with suppress(_RefusedError):  # a class that the workload has no longer
                sizes.recall(self._class_index(name), seen)
        self.machine = replace(self.machine, price=price)

    def state(self) -> dict[str, Any]:
        """Everything that later actions depend on, as plain values that compare."""
        known, workload = self.jobs.state(self.now), self.beliefs.workload
        return {
            "now": self.now,
            "cores": self.ledger.cores,
            "granted": self.ledger.granted,
            "expected": dict(self.ledger.expected),
            "policy": self.machine.policy.to_dict(),
            "price": self.price,
            "problem": self.problem,
            "round": self._round,
            "ended": dict(self.ended),
            "core_price": self.machine.price.value(self.machine.cores),
            "speedups": {
                name: [float(s(k)) for k in (1, 2, 4, 8, 16)]
                for name, s in zip(workload.class_names, workload.speedups, strict=True)
            },
            "jobs": {job: asdict(self.ledger.accounts[job]) | known[job] for job in known},
        }
