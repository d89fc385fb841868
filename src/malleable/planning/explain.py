"""Why does this job have three cores? One moment of a policy, and the same with a little more or less.

The policy is asked again with one core more, one core less, one job more and one job less; nothing is
assumed of how it decides, so every policy can be explained. Beside that stands what a core is worth to each
job. Going from a to b cores, a job of weight c does a unit of work in 1/s(b) and not 1/s(a) units of time,
and takes b/s(b) and not a/s(a) of core-time for it, so it saves

    c·(1/s(a) − 1/s(b)) / (b/s(b) − a/s(a))

of holding cost per unit of core-time. That is Whittle's index of the wider width; WHAM gives cores to the
highest, and its price lies between what the last core saves and what one more would save, for every job that
it gives more than the least. Under other policies the values of jobs differ, which is what they cost.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.errors import JobsError, MalleableError, did_you_mean
from malleable.model.jobs import Jobs
from malleable.numerics.json_numbers import finite
from malleable.planning import page, reasons

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from malleable.contracts import Allocation, FloatArray
    from malleable.model import JobType

    Divide = Callable[[Jobs, float], Allocation]

SAME = 1e-9
"""Cores that a job must gain or give up to be named, per core of the machine."""
MOST_CORES = 1 << 20
"""Where the search for the cores that would serve a waiting job ends."""


class Change(NamedTuple):
    """By how many cores a job's width would change."""

    id: str
    cores: float


@dataclass(frozen=True)
class WhatIf:
    """The same moment with a core or a job more or less."""

    cores: float
    """How many cores there would be."""
    changes: tuple[Change, ...]
    """Jobs whose widths would change, the largest change first; those that come and go are not among them."""
    id: str | None = None
    """The job it is about: the first to gain or to give, or the one that comes or goes."""
    width: float | None = None
    """Cores of the job that comes, or of the one that goes."""
    price: float | None = None
    problem: str = ""
    """Why the policy has no answer; empty if it has one."""

    def to_dict(self) -> dict[str, Any]:
        """Its part of the JSON document."""
        more = {"problem": self.problem} if self.problem else {}
        return {
            "id": self.id,
            "cores": self.cores,
            "price": self.price,
            **({} if self.width is None else {"width": self.width}),
            "changes": [change._asdict() for change in self.changes],
            **more,
        }


@dataclass(frozen=True)
class ExplainedJob:
    """One job: its cores, what the last of them saves, what one more would save, and why it has these."""

    id: str
    job_class: str
    cores: float
    value: float | None
    """Holding cost that its last core saves per unit of core-time; None on its least width, or without
    cores: it runs on that or not at all."""
    next: float | None
    """What one more core, or the next width that it may have, would save; None where it can have no more."""
    why: str

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSON document."""
        return {
            "id": self.id,
            "class": self.job_class,
            "cores": self.cores,
            "value": self.value,
            "next": self.next,
            "why": self.why,
        }


@dataclass(frozen=True)
class Explanation:
    """Who has how many cores at one moment, and why."""

    policy: str
    cores: float
    price: float | None
    """The policy's own price of a core; None where it has none."""
    jobs: tuple[ExplainedJob, ...]
    words: tuple[str, ...]
    """The answer in sentences, the most important first."""
    next_core: WhatIf
    lost_core: WhatIf | None
    """None on a single core."""
    arrival: WhatIf | None = None
    departure: WhatIf | None = None
    present: Jobs | None = field(default=None, repr=False, compare=False)

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{self.policy} on {reasons.cores_of(self.cores)}"

    def of(self, job: str) -> ExplainedJob:
        """One of the jobs."""
        return next(row for row in self.jobs if row.id == job)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable explain`."""
        events = {"arrival": self.arrival, "departure": self.departure}
        document: dict[str, Any] = finite(
            {
                "policy": self.policy,
                "cores": self.cores,
                "price": self.price,
                "words": list(self.words),
                "jobs": [job.to_dict() for job in self.jobs],
                "next_core": self.next_core.to_dict(),
                "lost_core": None if self.lost_core is None else self.lost_core.to_dict(),
                **{key: event.to_dict() for key, event in events.items() if event is not None},
            }
        )
        return document

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Headings, and a row for each job, as text."""
        gains, losses = (
            {change.id: change.cores for change in (() if event is None else event.changes)}
            for event in (self.next_core, self.lost_core)
        )
        number = reasons.number
        rows: list[tuple[str, ...]] = [
            (
                job.id,
                job.job_class,
                number(job.cores) if job.cores else "waits",
                number(job.value),
                number(job.next),
                reasons.signed(gains.get(job.id, 0.0)),
                reasons.signed(losses.get(job.id, 0.0)),
            )
            for job in self.jobs
        ]
        headings = ("job", "class", "cores", "last core saves", "one more saves", "n + 1", "n − 1")
        return headings, rows

    def __str__(self) -> str:
        return "\n".join([*self.words, *(f"{job.id} {job.why}." for job in self.jobs)])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.words)
        why = "".join(
            f"<li>{html.escape(f'{job.id} {job.why}.')}</li>" for job in self.jobs[: page.MOST_ROWS]
        )
        headings, rows = self.table()
        return f"{said}<ul>{why}</ul>{page.table(headings, rows)}"


def read_arrival(text: str) -> dict[str, str]:
    """A row of jobs from text such as "class=etl,remaining=2"."""
    row: dict[str, str] = {}
    for part in text.split(","):
        key, found, value = (word.strip() for word in part.partition("="))
        if not (key and found and value):
            raise JobsError(f"not a job: {text!r:.60}", "for example class=etl,remaining=2")
        row[key] = value
    return row


def explain(
    divide: Divide,
    jobs: Jobs,
    cores: float,
    *,
    policy: str,
    job: str | None = None,
    arriving: Jobs | None = None,
    whole: bool = False,
    most: FloatArray | None = None,
    why: Mapping[str, str] | None = None,
    search: bool = True,
) -> Explanation:
    """Explain what `divide` gives the jobs on these cores.

    `job` is the one to say most about: what happens if it leaves, and from how many cores on it is served if
    it waits. `arriving` is one job, which is not there yet. `whole` says that cores are given whole; `most`
    the most cores that each job takes; `why` a reason of its own for some jobs, which comes first. Without
    `search` it is not looked for how many cores would serve the job: the policy is asked less often.
    """
    if job is not None and job not in jobs.ids:
        raise JobsError(f"there is no job {job!r:.60}", did_you_mean(job, jobs.ids))
    now = divide(jobs, cores) if len(jobs) else None
    widths = np.zeros(0) if now is None else now.cores
    price = None if now is None else now.price
    asked = _Asked(divide, jobs, cores, widths)
    more = asked.on(cores + 1.0)
    fewer = asked.on(cores - 1.0) if cores >= 2.0 else None
    arrival = None if arriving is None else asked.joined_by(arriving)
    departure = None if job is None else asked.without(job)
    moment = reasons.Moment(jobs, widths, cores, price, *_values(jobs, widths, cores, whole, most))
    given = why or {}
    rows = tuple(
        ExplainedJob(
            name,
            jobs.workload.class_names[i],
            float(widths[j]),
            _known(moment.values[j]),
            _known(moment.following[j]),
            given.get(name, "") or reasons.why(moment, j),
        )
        for j, (name, i) in enumerate(zip(jobs.ids, jobs.class_index.tolist(), strict=True))
    )
    served_from = asked.served_from(job) if search and job is not None else None
    words = reasons.words(policy, moment, more, fewer, arrival, departure, job, served_from)
    if job is not None:
        words = (f"{job} {next(row.why for row in rows if row.id == job)}.", *words)
    return Explanation(policy, float(cores), price, rows, words, more, fewer, arrival, departure, jobs)


class _Asked:
    """A policy, asked about one moment again and again with a small change."""

    def __init__(self, divide: Divide, jobs: Jobs, cores: float, widths: FloatArray) -> None:
        self._divide, self._jobs, self._cores, self._widths = divide, jobs, cores, widths

    def on(self, cores: float) -> WhatIf:
        """The same jobs on another number of cores."""
        if len(self._jobs) == 0:
            return WhatIf(cores, ())
        found = self._try(self._jobs, cores)
        if isinstance(found, str):
            return WhatIf(cores, (), problem=found)
        changes = self._changes(self._jobs, found.cores - self._widths)
        sign = 1.0 if cores > self._cores else -1.0
        first = next((change.id for change in changes if sign * change.cores > 0.0), None)
        return WhatIf(cores, changes, first, price=found.price)

    def joined_by(self, arriving: Jobs) -> WhatIf:
        """One job more."""
        together = self._jobs.joined(arriving)
        name = together.ids[-1]
        found = self._try(together, self._cores)
        if isinstance(found, str):
            return WhatIf(self._cores, (), name, problem=found)
        changes = self._changes(self._jobs, found.cores[:-1] - self._widths)
        return WhatIf(self._cores, changes, name, float(found.cores[-1]), found.price)

    def without(self, job: str) -> WhatIf:
        """One job less."""
        gone = self._jobs.ids.index(job)
        left = np.delete(np.arange(len(self._jobs)), gone)
        width = float(self._widths[gone])
        if len(left) == 0:
            return WhatIf(self._cores, (), job, width)
        others = self._jobs.only(left)
        found = self._try(others, self._cores)
        if isinstance(found, str):
            return WhatIf(self._cores, (), job, width, problem=found)
        changes = self._changes(others, found.cores - self._widths[left])
        return WhatIf(self._cores, changes, job, width, found.price)

    def served_from(self, job: str) -> float | None:
        """On how many cores a job that waits would be served; on one core fewer it would not."""
        j = self._jobs.ids.index(job)
        if self._widths[j] > 0.0:
            return None

        def served(cores: float) -> bool:
            found = self._try(self._jobs, cores)
            return not isinstance(found, str) and bool(found.cores[j] > 0.0)

        step = 1.0
        while not served(self._cores + step):
            step *= 2.0
            if step > MOST_CORES:
                return None
        low, high = self._cores + step // 2.0, self._cores + step
        while high - low > 1.0:
            middle = low + (high - low) // 2.0
            low, high = (low, middle) if served(middle) else (middle, high)
        return high

    def _try(self, jobs: Jobs, cores: float) -> Allocation | str:
        """The policy's answer, or why it has none."""
        try:
            return self._divide(jobs, cores)
        except MalleableError as error:
            return str(error)

    def _changes(self, jobs: Jobs, by: FloatArray) -> tuple[Change, ...]:
        order = np.argsort(-np.abs(by), kind="stable")
        moved = [j for j in order.tolist() if abs(by[j]) > SAME * self._cores]
        return tuple(Change(jobs.ids[j], float(by[j])) for j in moved)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _values(
    jobs: Jobs, widths: FloatArray, cores: float, whole: bool, most: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """What the last core of each job saves, and what one more would save; NaN where there is none."""
    types = jobs.own_types or [jobs.workload.job_types[i] for i in jobs.class_index.tolist()]
    values, following = np.full(len(jobs), np.nan), np.full(len(jobs), np.nan)
    known: dict[Any, tuple[float, float]] = {}
    for j, one in enumerate(types):
        limit = np.inf if most is None else float(most[j])
        key = id(one), float(widths[j]), float(jobs.weight[j]), limit
        if key not in known:
            known[key] = _value(one, float(widths[j]), float(jobs.weight[j]), cores, whole, limit)
        values[j], following[j] = known[key]
    return values, following


def _value(
    one: JobType, width: float, weight: float, cores: float, whole: bool, limit: float
) -> tuple[float, float]:
    """The same of one job: the steps to the widths on both sides of its own."""
    if width <= 0.0:
        return np.nan, np.nan
    allowed = one.allowed_widths.allowed(cores + 1.0)
    least = max(float(one.speedup.most_efficient), 1.0)
    if allowed is not None:
        below, above = allowed[allowed < width - SAME], allowed[allowed > width + SAME]
        down = below[-1] if len(below) else np.nan
        up = above[0] if len(above) else np.nan
    else:
        down, up = (max(width - 1.0, least) if width > least else np.nan), width + 1.0
        down = np.floor(width - SAME) if whole and width - SAME > least else down
    up = up if up <= limit and one.shape == "malleable" else np.nan
    down = down if one.shape == "malleable" else np.nan
    return worth(one, weight, down, width), worth(one, weight, width, up)


def worth(one: JobType, weight: float, narrow: float, wide: float) -> float:
    """Holding cost saved per unit of core-time by going from a narrow to a wide width; NaN without them."""
    if np.isnan(narrow) or np.isnan(wide) or wide <= narrow:
        return np.nan
    slow, fast = float(one.speedup(narrow)), float(one.speedup(wide))
    saved, taken = weight * (1.0 / slow - 1.0 / fast), wide / fast - narrow / slow
    if saved <= 0.0:
        return 0.0
    return saved / taken if taken > 0.0 else np.inf
