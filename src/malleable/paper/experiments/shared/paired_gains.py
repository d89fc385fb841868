"""How much cheaper a policy is than another on the same jobs, in many settings, by intervals that all hold.

With m comparisons a verdict uses intervals of level 1 − 0.01/m each, so that all of them hold together with
probability 99 % at least.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.paper.contracts import Table, Verdict, failed
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.curves import high, low
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEVEL = 0.99
"""Confidence of a single comparison, and of all of them together."""
NEGLIGIBLE = 5e-4
"""A loss too small to notice; runs that are long enough tell any difference from 0."""


class Gain(NamedTuple):
    """How much cheaper (below 0) or dearer than another policy one is, as a share of the other's cost."""

    name: str
    of: Estimate
    """With the interval of the simulation, 95 %."""
    result: Any
    """The policy's simulation; None where there is none."""

    def at(self, confidence: float) -> Estimate:
        """The same with an interval of another level; what is known exactly has none."""
        if self.of.half_width == 0.0:
            return self.of
        return Estimate() if self.result is None else ev.widened(self.of, self.result, confidence)

    @property
    def percent(self) -> Estimate:
        """The same in percent."""
        return Estimate(*(100.0 * v for v in (self.of.mean, self.of.low, self.of.high)))


def gain(name: str, policy: str, value: Any, base: str = "wham") -> Gain:
    """The gain of a policy over `base` from the value of a cell that has compared them."""
    if failed(value):
        return Gain(name, Estimate(), None)
    cost = value["results"][base]["cost"]["mean"]
    found = read_interval(value["differences"][policy])
    relative = Estimate(*(v / cost for v in (found.mean, found.low, found.high)))
    return Gain(name, relative, value["results"][policy])


def together(gains: Sequence[Gain]) -> list[Estimate]:
    """Intervals that all hold with probability `LEVEL`; the whole line where there is no value."""
    level = 1.0 - (1.0 - LEVEL) / max(len(gains), 1)
    return [one.at(level) for one in gains]


def never_worse(statement: str, gains: Sequence[Gain]) -> Verdict:
    """No interval may lie above `NEGLIGIBLE`; a gain without an interval leaves it open."""
    known = together(gains)
    pairs = [(e, one) for e, one in zip(known, gains, strict=True) if isfinite(e.half_width)]
    if not pairs:
        return Verdict(statement, None, "runs too short for intervals")
    worse = sum(e.low > NEGLIGIBLE for e, _ in pairs)
    alone = sum(one.at(LEVEL).low > 0.0 for _, one in pairs)
    cheaper = sum(one.at(LEVEL).high < 0.0 for _, one in pairs)
    worst, where = max(pairs, key=lambda pair: pair[0].mean)
    text = (
        f"{len(pairs)} comparisons: {worse} significantly dearer all told; one by one at 99 % {alone} dearer "
        f"at all and {cheaper} cheaper; least favourable {worst.mean:+.2%} ({where.name}), largest upper end "
        f"{max(e.high for e, _ in pairs):+.2%}"
    )
    return Verdict(statement, False if worse else len(pairs) == len(gains) or None, text)


def gains_table(name: str, title: str, gains: Iterable[Gain]) -> Table:
    """One row per setting, with 99 % intervals one by one."""
    rows = []
    for one in gains:
        found = one.at(LEVEL)
        word = "cheaper" if found.high < 0.0 else "dearer" if found.low > 0.0 else "not told apart"
        jobs = None if one.result is None else one.result["jobs"]
        rows.append((one.name, one.of.mean, low(found), high(found), word, jobs))
    names = ("setting", "relative difference", "low (99 %)", "high (99 %)", "is", "jobs simulated")
    return Table(name, title, dict(zip(names, zip(*rows, strict=True), strict=True)))
