"""Who is to blame for what a schedule costs beyond the bound: jobs' regret, by group, and idle cores.

A job's regret is what it cost with rent for its cores, less what its own best schedule would have; a core
that stands idle costs its rent. All terms are at least 0, and they add up to cost less bound
(`theory.price_path`). Shares are of the mean cost of a job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import FloatArray
from malleable.replays.groups import (
    Groups,
    grouped_by_class,
    grouped_by_hour,
    grouped_by_user,
    grouped_by_width,
)
from malleable.replays.schedule import Schedule
from malleable.theory.price_path import blame

if TYPE_CHECKING:
    from malleable.theory.price_path import JobsBound

COSTLIEST = 10
MOST_USERS = 20
NEGLIGIBLE = 5e-4
"""A gap below this share of the cost is not worth a word."""


class Share(NamedTuple):
    """What the jobs of a group add to the mean cost of a job, beyond the bound."""

    name: str
    jobs: int
    regret: float


@dataclass(frozen=True, eq=False)
class Fault:
    """What a schedule costs beyond the bound, split."""

    schedule: Schedule
    regrets: FloatArray
    """Of each job, in cost per job of the log: they and `idle` add up to the gap."""
    idle: float
    bound: float
    """The bound by prices from which this is counted; a simpler one may be higher."""

    @classmethod
    def of(cls, schedule: Schedule, bound: JobsBound) -> Fault | None:
        """The split; None for a schedule without rents."""
        if schedule.rents is None:
            return None
        split = blame(bound, schedule.jobs, schedule.ends, schedule.rents)
        count = len(schedule.jobs)
        return cls(schedule, split.regrets / count, split.idle / count, bound.by_prices / count)

    @property
    def jobs(self) -> float:
        """All jobs' regret."""
        return float(self.regrets.sum())

    @property
    def total(self) -> float:
        """Cost less bound."""
        return self.jobs + self.idle

    def by_group(self, groups: Groups | None) -> list[Share]:
        """The regret of each group, the largest first."""
        if groups is None:
            return []
        sums, counts = groups.sums(self.regrets), groups.counts
        order = np.argsort(-sums, kind="stable")
        return [Share(groups.names[i], int(counts[i]), float(sums[i])) for i in order]

    @property
    def by_class(self) -> list[Share]:
        """By class of the log."""
        return self.by_group(grouped_by_class(self.schedule.jobs))

    @property
    def by_user(self) -> list[Share]:
        """By user."""
        return self.by_group(grouped_by_user(self.schedule.jobs))

    @property
    def by_width(self) -> list[Share]:
        """By width in the log."""
        return self.by_group(grouped_by_width(self.schedule.jobs))

    @property
    def _other_widths(self) -> list[Share]:
        """By width in the log, where that is not what classes are by."""
        return [] if self.by_width == self.by_class else self.by_width

    @property
    def by_hour(self) -> list[Share]:
        """By the hour of the week in which jobs came."""
        return [one for one in self.by_group(grouped_by_hour(self.schedule.jobs)) if one.jobs]

    def costliest(self, most: int = COSTLIEST) -> list[dict[str, Any]]:
        """The jobs with the largest regret."""
        one, jobs = self.schedule, self.schedule.jobs
        classes = grouped_by_class(jobs)
        rows = np.argsort(-self.regrets, kind="stable")[:most]
        return [
            {
                "id": str(i) if jobs.ids is None else jobs.ids[i],
                "class": classes.names[classes.codes[i]],
                "user": None if jobs.users is None else jobs.users[i],
                "cores": None if jobs.cores is None else float(jobs.cores[i]),
                "arrival": float(jobs.times[i]),
                "wait": float(one.waits[i]),
                "response": float(one.responses[i]),
                "slowdown": float(one.slowdowns[i]),
                "regret": float(self.regrets[i]),
            }
            for i in rows.tolist()
        ]

    def words(self) -> list[str]:
        """The same in sentences."""
        one = self.schedule
        if self.total <= NEGLIGIBLE * one.cost:
            return [f"Under {one.policy} next to nothing is lost: {self.total / one.cost:.2%} of the cost."]
        idle = self.idle / self.total
        late = "jobs that ran late, too narrow or too wide"
        said = [
            f"Of what {one.policy} costs beyond the bound, {idle:.0%} is idle cores, {1 - idle:.0%} {late}."
        ]
        for what, shares in (
            ("class", self.by_class), ("width in the log", self._other_widths), ("user", self.by_user)
        ):  # fmt: skip
            if len(shares) > 1 and self.jobs > 0.0:
                first = shares[0]
                part, count = first.regret / self.jobs, first.jobs / len(one.jobs)
                said.append(
                    f"By {what}, {first.name} carries the largest part of the jobs' regret: {part:.0%}, with "
                    f"{count:.0%} of the jobs."
                )
        if self.jobs > 0.0:
            worst, top = self.by_hour[0], self.costliest()
            line = f"Jobs that came on {worst.name} carry {worst.regret / self.jobs:.0%}"
            if len(one.jobs) > len(top):
                line += f"; the {len(top)} costliest jobs {sum(row['regret'] for row in top) / self.jobs:.0%}"
            said.append(f"{line}.")
        return said

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "jobs": self.jobs,
            "idle": self.idle,
            "bound": self.bound,
            "by_class": [share._asdict() for share in self.by_class],
            "by_user": [share._asdict() for share in self.by_user[:MOST_USERS]],
            "by_width": [share._asdict() for share in self.by_width],
            "by_hour": [share._asdict() for share in self.by_hour],
            "costliest": self.costliest(),
            "words": self.words(),
        }
