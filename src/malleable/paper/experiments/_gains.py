"""How much cheaper than WHAM a policy is on the same jobs, many settings at a time, and what that proves.

A gain is the paired difference of two costs as a share of WHAM's. With m gains at once each is given the
interval of level 1 − 0.01/m, so that a policy that is nowhere dearer is called so by chance in 1 % of cases
at most.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.paper.contracts import Table, Verdict, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._curves import high, low
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LEVEL = 0.99
"""Confidence of a single comparison, and of all of them together."""
NEGLIGIBLE = 5e-4
"""A loss that nobody would notice; runs that are long enough tell any difference from 0."""


class Gain(NamedTuple):
    """How much cheaper (below 0) or dearer than WHAM a policy is, as a share of WHAM's cost."""

    name: str
    of: Estimate
    """With the interval of the simulation, 95 %."""
    result: Any
    """The policy's simulation; None where there is none."""

    def at(self, confidence: float) -> Estimate:
        """The same with an interval of another level."""
        return Estimate() if self.result is None else ev.widened(self.of, self.result, confidence)

    @property
    def percent(self) -> Estimate:
        """The same in percent."""
        return Estimate(*(100.0 * v for v in (self.of.mean, self.of.low, self.of.high)))


def gain(name: str, policy: str, value: Any) -> Gain:
    """The gain of a policy in a comparison with WHAM."""
    if failed(value):
        return Gain(name, Estimate(), None)
    wham = value["results"]["wham"]["cost"]["mean"]
    found = ev.estimate(value["differences"][policy])
    relative = Estimate(*(v / wham for v in (found.mean, found.low, found.high)))
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


def better(statement: str, gains: Sequence[Gain]) -> Verdict:
    """All intervals must lie below 0; one above refutes it."""
    known = together(gains)
    text = ", ".join(f"{one.of.mean:+.1%} ({one.name.partition(', ')[2]})" for one in gains)
    if any(e.low > 0.0 for e in known):
        return Verdict(statement, False, text)
    return Verdict(statement, all(e.high < 0.0 for e in known) or None, text)


def fades(statement: str, by_cores: Mapping[int, Gain]) -> Verdict:
    """At the most cores the gain must be surely less than half of that at the fewest."""
    points = sorted(by_cores.items())
    first, last = together([points[0][1], points[-1][1]])
    text = ", ".join(f"{one.of.mean:+.2%} at n = {n}" for n, one in points)
    if _least(last) > _most(first):
        return Verdict(statement, False, text)
    return Verdict(statement, _most(last) < 0.5 * _least(first) or None, text)


def _least(of: Estimate) -> float:
    """The least size that the interval allows."""
    return max(of.low, -of.high, 0.0)


def _most(of: Estimate) -> float:
    return max(-of.low, of.high)


def outdone(statement: str, rule: Sequence[Gain], others: Mapping[str, Sequence[Gain]]) -> Verdict:
    """Each of the others must be surely dearer than the rule in one of the settings at least."""
    text, lost = [], []
    for name, gains in others.items():
        where = [
            f"{theirs.mean - ours.mean:+.1%} ({setting.name})"
            for setting, ours, theirs in zip(rule, together(rule), together(gains), strict=True)
            # Both are differences from WHAM on the same jobs; adding the half-widths errs on the safe side.
            if theirs.low > ours.high
        ]
        lost.append(bool(where))
        text.append(f"{name}: {', '.join(where) or 'nowhere'}")
    return Verdict(statement, all(lost) or None, f"dearer than the rule, {'; '.join(text)}")


def gains_table(name: str, title: str, gains: Iterable[Gain]) -> Table:
    """One row a setting, with 99 % intervals one by one."""
    rows = []
    for one in gains:
        found = one.at(LEVEL)
        word = "cheaper" if found.high < 0.0 else "dearer" if found.low > 0.0 else "not told apart"
        jobs = None if one.result is None else one.result["jobs"]
        rows.append((one.name, one.of.mean, low(found), high(found), word, jobs))
    names = ("setting", "relative difference", "low (99 %)", "high (99 %)", "is", "jobs simulated")
    return Table(name, title, dict(zip(names, zip(*rows, strict=True), strict=True)))
