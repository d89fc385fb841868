"""Verdicts of e10b_discounted: what its numbers bear out."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e10b_discounted.readings import (
    LEVEL,
    Gain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.statistics.intervals import Estimate

NEGLIGIBLE = 5e-4
"""A loss too small to notice; runs that are long enough tell any difference from 0."""


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
