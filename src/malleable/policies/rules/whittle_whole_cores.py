"""The discounted Whittle policy on whole cores: widths rounded down, and the rest by the value of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.contracts import Speedup
from malleable.policies.rules.tolerances import DUST
from malleable.theory.whittle import Arms

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray, Jobs


class Bandits(NamedTuple):
    """Jobs of any speedups as bandits: their positions, and one `Arms` a class or family."""

    parts: tuple[tuple[IntArray, Arms], ...]
    weight: FloatArray

    @classmethod
    def of(cls, jobs: Jobs, chosen: IntArray, discount: float, limit: float) -> Bandits:
        """The chosen jobs, in that order, none of which may use more than `limit` cores."""
        x, c = jobs.remaining[chosen], jobs.weight[chosen]
        families = _families(jobs, chosen, limit)
        return cls(tuple((at, Arms(speedup, x[at], c[at], discount, limit)) for at, speedup in families), c)

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
        value = bandits.gather(Arms.log_step_value, narrow, np.where(room, whole + step, narrow))
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
