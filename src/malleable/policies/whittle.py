"""The discounted Whittle policy, from which the paper derives WHAM by letting the discount rate α go to 0.

Each job is a single-armed bandit that rents cores at price l (`malleable.theory.whittle`): it waits above its
index, and below it takes the width of least discounted cost. The policy sets the smallest price at which the
jobs together want at most n cores.

With `arm=optimal` a job may take other widths later. Its index is αc·Ψ⁻¹(αx), and below it its width grows
from the most efficient one. With `arm=constant` it chooses one width for life, as the paper's definition
says; then it jumps at its index, αc / min_k k·(e^{αx/s(k)} − 1), from 0 to one core or, if long, to many.

The cores that do not suffice for the next jump would idle, so they are used as follows:

1. The jobs that the clearing price serves are served, equal indices by arrival.
2. The first job left out gets what is left at the price where that little is just worth it to it, if by then
   the served jobs leave it at least one core. (So the block of a speedup with a linear start is split, as
   by WHAM.)
3. Otherwise the price falls on among the served jobs alone until they use all the cores that help them.

With whole cores the widths are rounded down and the rest goes to the steps of highest value, core by core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from malleable.catalog.spec import positive
from malleable.contracts import Speedup
from malleable.policies.base import ANY, DUST, JobRule, Moment, Need, Positive, Program
from malleable.policies.rules.whittle_rule import whittle_price, whittle_rule, whittle_table
from malleable.theory.whittle import kind_of_arm

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray, Jobs
    from malleable.theory.optimal_arm import Arms


@dataclass(frozen=True)
class Whittle(JobRule):
    """Discounted Whittle index policy: WHAM before its limit α → 0; `discount` is α, in 1/time."""

    needs = "speedups, work left"

    discount: Positive = 0.05
    arm: Literal["optimal", "constant"] = "optimal"

    alternatives: ClassVar[dict[str, Any]] = {"alpha": ("discount", positive("alpha"))}

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:  # noqa: ARG002
        table = whittle_table(workload, float(cores), self.discount, constant=self.constant)
        return Program(whittle_rule, table, price=whittle_price, to_whole=self._whole)

    def _whole(self, moment: Moment) -> FloatArray:
        jobs, cores, given = moment.jobs, moment.cores, np.empty(len(moment.jobs))
        given[jobs.order] = moment.widths
        index = self.bandits(jobs, np.arange(len(jobs)), cores).log_index
        queue, out = jobs.by(index)[: int(cores) + 1], np.zeros(len(jobs))
        out[queue] = whole_widths(self.bandits(jobs, queue, cores), given[queue], cores)
        return out[jobs.order]

    def bandits(self, jobs: Jobs, chosen: IntArray, cores: float) -> Bandits:
        """The chosen jobs, in that order, as arms of the policy's kind."""
        return Bandits.of(jobs, chosen, kind_of_arm(constant=self.constant), self.discount, cores)

    @property
    def constant(self) -> bool:
        """Whether a job holds one action for life."""
        return self.arm == "constant"


class Bandits(NamedTuple):
    """Jobs of any speedups as bandits: their positions, and one `Arms` a class or family."""

    parts: tuple[tuple[IntArray, Arms], ...]
    weight: FloatArray

    @classmethod
    def of(cls, jobs: Jobs, chosen: IntArray, arm: type[Arms], discount: float, limit: float) -> Bandits:
        """The chosen jobs, in that order, none of which may use more than `limit` cores."""
        x, c = jobs.remaining[chosen], jobs.weight[chosen]
        families = _families(jobs, chosen, limit)
        return cls(tuple((at, arm(speedup, x[at], c[at], discount, limit)) for at, speedup in families), c)

    def gather(self, one: Callable[..., FloatArray], *columns: FloatArray) -> FloatArray:
        """A value for each job, computed part by part from its entries of the columns."""
        out = np.empty(len(self.weight))
        for at, arms in self.parts:
            out[at] = one(arms, *(column[at] for column in columns))
        return out

    @property
    def log_index(self) -> FloatArray:
        return self.gather(lambda arms: arms.log_index)

    def width(self, price: float) -> FloatArray:
        return self.gather(lambda arms: arms.width(price))


def _families(jobs: Jobs, chosen: IntArray, limit: float) -> list[tuple[IntArray, Speedup]]:
    """Who shares a speedup: the jobs of a class or, where jobs bring their own, of a stacked family."""
    index = jobs.speedup_index[chosen]
    if jobs.own_speedups is None:
        return [(np.flatnonzero(index == i), jobs.speedups[i].capped(limit)) for i in np.unique(index)]
    members = [jobs.speedups[i].capped(limit) for i in index]
    families: dict[Any, list[int]] = {}
    for position, speedup in enumerate(members):
        families.setdefault(type(speedup) if speedup.vectorised else speedup, []).append(position)
    return [
        (np.array(at), kind if isinstance(kind, Speedup) else kind.stack([members[j] for j in at]))
        for kind, at in families.items()
    ]


def whole_widths(bandits: Bandits, widths: FloatArray, cores: float) -> FloatArray:
    """Round down, then hand out the freed cores by value, half of them a round: a job may win twice.

    Steps are single cores as long as one of these gains speed; a table may need several at once.
    """
    whole = np.floor(widths + DUST)
    spare, step = cores - float(whole.sum()), 1.0
    most = bandits.gather(_whole_peak)
    while spare >= step:
        room = (whole >= 1.0) & (whole + step <= most)
        if not room.any():
            break
        narrow = np.maximum(whole, 1.0)
        value = bandits.gather(
            lambda arms, k, wider: arms.log_step_value(k, wider), narrow, np.where(room, whole + step, narrow)
        )
        winners = np.argsort(-value, kind="stable")[: max(1, int(spare / step) // 2)]
        winners = winners[value[winners] > -np.inf]
        whole[winners] += step
        spare -= step * len(winners)
        step = 1.0 if len(winners) else step + 1.0
    return whole


def _whole_peak(arms: Arms) -> FloatArray:
    """The integer next to the peak with the higher speed, the smaller one where they tie."""
    down, up = np.floor(arms.high), np.ceil(arms.high)
    return np.where(arms.speedup.speed(up) > arms.speedup.speed(down), up, down)
