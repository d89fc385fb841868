"""The law of sizes of each class, learned from jobs that have ended and from those that still run.

The hazard is piecewise that of a Pareto law: within a cell of the logarithm of the work done, a job ends at
the rate a/x. A cell keeps how many jobs ended in it, D, and for how long jobs were in it, L, both on the
scale of logarithms. A job that still runs counts for L up to the work that it has done, so what is censored
needs no model (Kaplan and Meier's argument). With m prior jobs of hazard α/x

    a = (D + m·α) / (L + m).

A cell in which nothing was seen keeps the hazard α/x: beyond the largest size seen the law goes on as a
Pareto law, whose E[X − x | X > x] = x/(α − 1) grows in proportion to the work done. A class of which nothing
is known has this hazard everywhere. It has no scale: a newcomer is expected to end at once, and later and
later the longer it goes on. Classes lend each other a little: the prior hazard of one is that of all
together. What was seen fades with every job that ends, so that the law may drift.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from malleable.contracts import FloatArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import Distribution, IntArray

PER_OCTAVE = 2
LOWEST, HIGHEST = -20, 36
"""The cells reach from 2⁻²⁰ to 2³⁶ units of work: in seconds, from a microsecond to two thousand years."""
EDGES: FloatArray = 2.0 ** (np.arange(PER_OCTAVE * LOWEST, PER_OCTAVE * HIGHEST + 1) / PER_OCTAVE)
CELLS = len(EDGES) - 1
STEP = float(np.log(2.0)) / PER_OCTAVE
"""The width of a cell on the scale of logarithms."""
LOG_EDGES: FloatArray = np.log(EDGES)
MOST_HAZARD = 600.0
"""Integral of a hazard beyond which floats end."""
INDEX = 2.0
"""α of what was never seen: as much is expected to be left as was done."""
PRIOR = 0.2
"""m: a cell that one job has crossed counts STEP."""
KEPT = 0.99
"""What every job that ends leaves of what was seen before."""
FROM_FILE = 10.0
"""Jobs that the law of a workload file counts as."""
TRIMMED = 0.05
"""Share of the jobs, the longest from any age on, of which nothing is expected: one outlier is no tail."""
RARE = 1e-3
"""Time in a cell below which the law of a workload file says nothing about it."""
UNITS_KEPT = 64
"""Jobs of a class whose work per unit is remembered."""
ACCURATE = 1.25
"""By how much a job may be larger or smaller than it declared."""


@dataclass
class ClassSeen:
    """What ended jobs of a class have shown: their sizes, the work of their units, and what they declared."""

    ended: FloatArray = field(default_factory=lambda: np.zeros(CELLS))
    """How many jobs ended in each cell."""
    lived: FloatArray = field(default_factory=lambda: np.zeros(CELLS))
    """How long jobs were in it on the scale of logarithms."""
    unit_work: deque[float] = field(default_factory=lambda: deque(maxlen=UNITS_KEPT))
    """What a unit of the last jobs took on one core."""
    kept_word: float = 0.0
    broke_word: float = 0.0
    """Jobs that were of the size that they declared, and others."""

    def end(self, work: float, *, finished: bool) -> None:
        """A job ended after so much work; one that did not finish would have gone on."""
        self.ended *= KEPT
        self.lived *= KEPT
        self.lived += time_in_cells(np.array([work]))
        if finished:
            self.ended[cell_of(np.array([work]))] += 1.0

    def compare(self, declared: float, work: float) -> None:
        """A job that had declared its size finished after so much work."""
        kept = declared / ACCURATE <= work <= declared * ACCURATE
        self.kept_word = KEPT * self.kept_word + kept
        self.broke_word = KEPT * self.broke_word + (not kept)

    @property
    def trust(self) -> float:
        """How far a declared size is believed: in full until a job was not as it had said."""
        return (self.kept_word + 0.5) / (self.kept_word + self.broke_word + 0.5)

    def to_dict(self) -> dict[str, Any]:
        """What was seen, as a plain document."""
        return {
            "ended": self.ended.round(6).tolist(),
            "lived": self.lived.round(6).tolist(),
            "unit_work": list(self.unit_work),
            "declared": [self.kept_word, self.broke_word],
        }

    @classmethod
    def from_dict(cls, document: Any) -> ClassSeen:
        """Read what `to_dict` made; a ValueError says what is wrong with it."""
        ended, lived = _counts(document, "ended", CELLS), _counts(document, "lived", CELLS)
        kept_word, broke_word = _counts(document, "declared", 2).tolist()
        unit_work = _counts(document, "unit_work", None)
        if not (unit_work > 0.0).all():
            raise ValueError("the work of a unit must be positive")
        return cls(ended, lived, deque(unit_work.tolist(), UNITS_KEPT), kept_word, broke_word)


def _counts(document: Any, key: str, count: int | None) -> FloatArray:
    """Numbers of a document that are finite and not negative."""
    try:
        values = np.asarray(document[key], dtype=float)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{key!r} must be a list of numbers") from None
    if values.ndim != 1 or (count is not None and len(values) != count):
        raise ValueError(f"{key!r} must be a list of {count or 'so many'} numbers")
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise ValueError(f"{key!r} must be finite and not negative")
    return values


def cell_of(work: FloatArray) -> Any:
    """The cell of each amount of work; what is beyond all of them counts for the outermost."""
    return np.clip(np.searchsorted(EDGES, work, side="right") - 1, 0, CELLS - 1)


def time_in_cells(work: FloatArray) -> FloatArray:
    """For how long jobs that have done so much work were in each cell, in all."""
    cells = cell_of(work)
    entered = np.bincount(cells, minlength=CELLS)
    crossed = entered[::-1].cumsum()[::-1] - entered
    inside = np.clip(np.log(np.maximum(work, EDGES[0]) / EDGES[cells]), 0.0, STEP)
    return np.asarray(STEP * crossed + np.bincount(cells, weights=inside, minlength=CELLS))


def seen_of_law(law: Distribution, jobs: float) -> tuple[FloatArray, FloatArray]:
    """Ends and times in each cell that so many jobs of a law would show on average."""
    inner = np.linspace(0.0, STEP, 9)
    alive = np.asarray(law.survival(EDGES[:-1, None] * np.exp(inner)))
    lived = np.trapezoid(alive, dx=inner[1], axis=1)
    return jobs * (alive[:, 0] - alive[:, -1]), jobs * lived


def hazards(ended: FloatArray, lived: FloatArray, prior: FloatArray | float) -> FloatArray:
    """a of each cell, from what was seen in it and in its neighbours."""
    return (_mean_around(ended, (1, 2, 1)) + PRIOR * prior) / (_mean_around(lived, (1, 2, 1)) + PRIOR)


def mean_at_edges(hazard: FloatArray) -> FloatArray:
    """E[X − x | X > x] at every edge, rows being classes, without the longest `TRIMMED` share of the jobs.

    With H the integral of the hazard, it is e^(H(x)) times the area under e^(−H) from x to where that has
    fallen to the share. The prior holds beyond the last edge.
    """
    slope = 1.0 - hazard
    flat = np.abs(slope) < 1e-9
    area = EDGES[:-1] * np.where(flat, STEP, np.expm1(slope * STEP) / np.where(flat, 1.0, slope))
    edge = np.ones((len(hazard), 1))
    total = np.minimum(np.concatenate([0.0 * edge, np.cumsum(hazard * STEP, axis=1)], axis=1), MOST_HAZARD)
    area = np.concatenate([area, edge * EDGES[-1] / (INDEX - 1.0)], axis=1)
    beyond = np.concatenate([(area * np.exp(-total))[:, ::-1].cumsum(axis=1)[:, ::-1], 0.0 * edge], axis=1)
    ends = np.array([np.searchsorted(row, row - np.log(TRIMMED)) for row in total])
    sums = beyond[:, :-1] - np.take_along_axis(beyond, np.maximum(ends, 1), axis=1)
    return np.asarray(np.maximum(sums * np.exp(total), area))


def _mean_around(values: FloatArray, weights: tuple[int, ...]) -> FloatArray:
    """A weighted mean of each cell and its neighbours; the outermost cells are their own neighbours."""
    reach = len(weights) // 2
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(reach, reach)], mode="edge")
    parts = (w * padded[..., k : k + CELLS] for k, w in enumerate(weights))
    return np.asarray(sum(parts) / sum(weights))


class LearnedSizes:
    """What jobs of each class have shown of their sizes, and what is expected of those that run."""

    def __init__(self, laws: Sequence[Distribution | None]) -> None:
        self.seen: list[ClassSeen] = []
        self._given = np.zeros((2, 0, CELLS))
        """What the laws of a workload file count as having shown."""
        self._expected: FloatArray | None = None
        self._integral: FloatArray = np.zeros((0, CELLS + 1))
        """Of the hazard of each class, up to each edge."""
        self._looked_at = b""
        for law in laws:
            self.add_class(law)

    def add_class(self, law: Distribution | None) -> None:
        """A class of which a law is given, or nothing is known."""
        self.seen.append(ClassSeen())
        given = np.zeros((2, CELLS)) if law is None else np.array(seen_of_law(law, FROM_FILE))
        self._given = np.concatenate([self._given, given[:, None]], axis=1)
        self._expected = None

    def end(self, class_index: int, work: float, *, finished: bool, declared: float | None = None) -> None:
        """A job of a class ended after so much work."""
        self.seen[class_index].end(work, finished=finished)
        if finished and declared is not None:
            self.seen[class_index].compare(declared, work)
        self._expected = None

    def recall(self, class_index: int, seen: ClassSeen) -> None:
        """Take over what an earlier run has seen of a class."""
        self.seen[class_index] = seen
        self._expected = None

    @property
    def trust(self) -> FloatArray:
        """How far the sizes that jobs of each class declare are believed."""
        return np.array([seen.trust for seen in self.seen])

    def unit_work(self, class_index: int) -> float | None:
        """Work of a unit that is usual in a class, if one was ever measured."""
        known = self.seen[class_index].unit_work
        return float(np.median(known)) if known else None

    def look(self, classes: IntArray, done: FloatArray) -> None:
        """Take in which cells the jobs have crossed that are there, and of which classes they are."""
        crossed = EDGES[cell_of(done)]
        looked_at = classes.tobytes() + crossed.tobytes()
        if self._expected is not None and looked_at == self._looked_at:
            return
        self._looked_at = looked_at
        running = np.array([time_in_cells(crossed[classes == i]) for i in range(len(self.seen))])
        ended = np.array([seen.ended for seen in self.seen])
        lived = np.array([seen.lived for seen in self.seen]) + running
        around = [_mean_around(values.sum(axis=0), (1,) * 5) for values in (ended, lived)]
        pooled = (around[0] + PRIOR * INDEX) / (around[1] + PRIOR)
        given_ended, given_lived = self._given
        prior = np.where(given_lived > RARE, given_ended / np.maximum(given_lived, RARE), pooled)
        hazard = hazards(ended + given_ended, lived + given_lived, prior)
        self._expected = mean_at_edges(hazard)
        self._integral = np.pad(np.cumsum(hazard * STEP, axis=1), ((0, 0), (1, 0)))

    def remaining(self, class_index: int, done: FloatArray) -> FloatArray:
        """E[X − done | X > done] of jobs of a class."""
        self._look_once()
        expected = cast("FloatArray", self._expected)[class_index]
        inside = np.maximum(done, EDGES[0])
        beyond = np.maximum(inside / EDGES[-1], 1.0)
        return np.asarray(np.interp(np.log(inside), LOG_EDGES, expected) * beyond)

    def possible(self, class_index: int, done: FloatArray, chance: FloatArray) -> FloatArray:
        """What is left with so much chance at most, P(X − done ≤ y | X > done)."""
        self._look_once()
        integral, inside = self._integral[class_index], np.log(np.maximum(done, EDGES[0]))
        before = np.interp(inside, LOG_EDGES, integral) + INDEX * np.maximum(inside - LOG_EDGES[-1], 0.0)
        ends = before - np.log1p(-chance)
        beyond = np.maximum(ends - integral[-1], 0.0) / INDEX
        return np.asarray(np.exp(np.interp(ends, integral, LOG_EDGES) + beyond) - done)

    def _look_once(self) -> None:
        """Whoever asks before jobs are there is told what ended ones have shown."""
        if self._expected is None:
            self.look(np.zeros(0, dtype=np.intp), np.zeros(0))


class GivenSizes:
    """Sizes as the workload and the jobs say, from which nothing is learned."""

    def __init__(self, laws: Sequence[Distribution]) -> None:
        self.laws = list(laws)

    def remaining(self, class_index: int, done: FloatArray) -> FloatArray:
        """What the law expects, and as much again as was done where it knows no job that large."""
        expected = self.laws[class_index].mean_remaining(done)
        return np.where(expected > 0.0, expected, done)
