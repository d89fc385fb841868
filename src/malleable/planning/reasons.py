"""The words of an explanation.

A reason is given only where it is true of the moment: it is looked up, not assumed of the policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from malleable.contracts import FloatArray
from malleable.model.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.planning.explain import Change, WhatIf

MOST_NAMED = 4
"""Jobs that a sentence names."""
ROUNDING = 1e-6
"""Relative difference of values that is rounding."""


def number(value: float | None) -> str:
    """A number for people; a dash for none."""
    return "–" if value is None or np.isnan(value) else "∞" if np.isinf(value) else f"{value:.4g}"


def signed(change: float) -> str:
    """A change for people; nothing for none."""
    return f"{change:+.4g}" if change else ""


@dataclass(frozen=True, eq=False)
class Moment:
    """Jobs, what they have, and what they are worth."""

    jobs: Jobs
    widths: FloatArray
    cores: float
    price: float | None
    values: FloatArray
    """What the last core of each job saves (NaN: it has one core, or none)."""
    following: FloatArray
    """What one more core would save (NaN: it can have no more)."""

    @cached_property
    def cleared(self) -> bool:
        """Whether the policy's price explains the widths.

        Their last cores are worth it to those who have them, and one more is not worth it to any.
        """
        if not self.price or not (self.widths > 0.0).any():
            return False
        low = np.nanmax(self.following, initial=0.0)
        high = np.nanmin(self.values, initial=np.inf)
        return bool(low <= self.price * (1.0 + ROUNDING) and high >= self.price * (1.0 - ROUNDING))

    @cached_property
    def index(self) -> FloatArray:
        """c/x of each job: what it costs for each unit of its remaining work."""
        with np.errstate(divide="ignore"):
            return self.jobs.weight / self.jobs.remaining

    @cached_property
    def rank(self) -> FloatArray:
        """Places in the order of c/x, from 1."""
        places = np.empty(len(self.jobs))
        places[self.jobs.by(self.index)] = np.arange(len(self.jobs)) + 1.0
        return places

    @cached_property
    def order(self) -> str:
        """In which order jobs are served while others wait, if it shows: by c/x, by arrival, or neither."""
        served = self.widths > 0.0
        if served.all() or not served.any():
            return ""
        if self.index[served].min() >= self.index[~served].max():
            return "index"
        return "arrival" if self.jobs.age[served].min() >= self.jobs.age[~served].max() else ""


def why(moment: Moment, j: int) -> str:
    """Why job j has its cores, as what follows its name in a sentence."""
    jobs, width = moment.jobs, float(moment.widths[j])
    if width == 0.0:
        return f"waits {_waiting(moment, j)}"
    one = jobs.workload.job_types[int(jobs.class_index[j])] if jobs.own_types is None else jobs.own_types[j]
    reason = ""
    if one.shape == "rigid":
        reason = " because it is rigid and runs on no other width"
    elif one.shape == "moldable" and jobs.held[j] > 0.0:
        reason = " because it is moldable and keeps the width that it started on"
    elif width < 1.0:
        reason = f" because {len(jobs)} jobs share {cores_of(moment.cores)} in time"
    elif moment.following[j] == 0.0:
        reason = " because more would not make it faster"
    elif moment.cleared:
        reason = f" because {_against_the_price(moment, j)}"
    return f"has {cores_of(width)}{reason or _savings(moment, j)}"


def _savings(moment: Moment, j: int) -> str:
    """What its cores are worth to a job, where they do not explain its width."""
    value, following = moment.values[j], moment.following[j]
    saves = [] if np.isnan(value) else [f"the last of them saves {number(value)}"]
    saves += [] if np.isnan(following) else [f"one more would save {number(following)}"]
    return f": {', '.join(saves)}" if saves else ""


def _against_the_price(moment: Moment, j: int) -> str:
    value, following, price = moment.values[j], moment.following[j], number(moment.price)
    if np.isnan(following):
        return "it takes no more"
    more = f"one more would save {number(following)}"
    if np.isnan(value):
        return f"no job has less, and {more}, less than the price {price}"
    return f"the last of them saves {number(value)}, at least the price {price}, and {more}"


def _waiting(moment: Moment, j: int) -> str:
    """Why a job has no core, as far as it shows."""
    count, served = len(moment.jobs), int((moment.widths > 0.0).sum())
    free = moment.cores - float(moment.widths.sum())
    if not served:
        return f"as the policy serves no job on {cores_of(moment.cores)}"
    if moment.order == "index":
        return (
            f"because the {served} jobs with the highest cost per remaining work have the cores: its "
            f"{number(moment.index[j])} is number {moment.rank[j]:.0f} of {count}"
        )
    if moment.order == "arrival":
        before = int((moment.jobs.age > moment.jobs.age[j]).sum())
        return f"because jobs are served in order of arrival, and {before} came before it"
    if free >= 1.0:
        return f"although {cores_of(free)} {'are' if free > 1.0 else 'is'} idle: the policy gives it none"
    return f"because the policy gives all cores to {served} other jobs"


def words(
    policy: str,
    moment: Moment,
    more: WhatIf,
    fewer: WhatIf | None,
    arrival: WhatIf | None,
    departure: WhatIf | None,
    job: str | None,
    served_from: float | None,
) -> tuple[str, ...]:
    """The moment in sentences."""
    said = [_overview(policy, moment)]
    if served_from is not None:
        said.append(f"{job} would be served from {cores_of(served_from)} on.")
    said.append(_change(moment, more, "The next core", "goes to", "is shared by"))
    if fewer is not None:
        said.append(_change(moment, fewer, "A core that is lost", "comes from", "comes from"))
    if arrival is not None:
        said.append(_arrives(arrival))
    if departure is not None:
        said.append(_leaves(departure))
    return tuple(said)


def _overview(policy: str, moment: Moment) -> str:
    count, used = len(moment.jobs), float(moment.widths.sum())
    if count == 0:
        return f"{cores_of(moment.cores)} are idle: there is no job."
    waiting = int((moment.widths == 0.0).sum())
    jobs = "1 job" if count == 1 else f"{count} jobs"
    waits = f", {waiting} of them without a core" if waiting else ""
    in_use = "all in use" if used > moment.cores * (1.0 - 1e-9) else f"{number(used)} in use"
    priced = f", at a price of {number(moment.price)} per core" if moment.price else ""
    return f"{policy} divides {cores_of(moment.cores)}, {in_use}, among {jobs}{waits}{priced}."


def _change(moment: Moment, event: WhatIf, what: str, one: str, several: str) -> str:
    """Who gains when a core is added, or gives one up when it is lost."""
    if event.problem:
        return f"On {cores_of(event.cores)} {moment_problem(event)}."
    sign = 1.0 if event.cores > moment.cores else -1.0
    first = [change for change in event.changes if sign * change.cores > 0.0]
    if not first:
        return f"{what} changes no job: {number(moment.cores - moment.widths.sum())} are idle."
    said = f"{what} {one if len(first) == 1 else several} {_named(first)}"
    others = [change for change in event.changes if sign * change.cores < 0.0]
    return f"{said}; {_named(others)} moves with it." if others else f"{said}."


def _arrives(event: WhatIf) -> str:
    if event.problem:
        return f"If {event.id} arrived, {moment_problem(event)}."
    if not event.width:
        return f"If {event.id} arrived, it would wait."
    taken = [change for change in event.changes if change.cores < 0.0]
    source = (
        f", from {_named(taken)}" if taken else ", which are free" if event.width > 1.0 else ", which is free"
    )
    return f"If {event.id} arrived, it would have {cores_of(event.width)}{source}."


def _leaves(event: WhatIf) -> str:
    if event.problem:
        return f"If {event.id} left, {moment_problem(event)}."
    if not event.changes:
        return f"If {event.id} left, no other job would change."
    return f"If {event.id} left, the others would change: {_named(event.changes)}."


def moment_problem(event: WhatIf) -> str:
    """What keeps the policy from answering, inside a sentence."""
    return f"the policy has no answer ({event.problem.rstrip('.')})"


def _named(changes: Sequence[Change]) -> str:
    """Jobs with their changes; of many the first."""
    shown = ", ".join(f"{change.id} ({signed(change.cores)})" for change in changes[:MOST_NAMED])
    left = len(changes) - MOST_NAMED
    return f"{shown} and {left} more" if left > 0 else shown


def cores_of(count: float) -> str:
    """A number of cores for people."""
    return "1 core" if count == 1.0 else f"{count:.10g} cores" if count % 1.0 == 0.0 else f"{count:.4g} cores"
