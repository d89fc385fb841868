"""Verdicts of e10b_discounted: what its numbers bear out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.shared.paired_gains import Gain, together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.statistics.intervals import Estimate


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
