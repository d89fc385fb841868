"""Policies on the same jobs: what a cell of `compared` says of them, and whether one ever costs more.

With m comparisons a verdict uses intervals of level 1 − 0.01/m each, so that all of them hold together with
probability 99 % at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.paper.contracts import Table, Verdict, failed
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LEVEL = 0.99
"""Confidence of a single comparison, and of all of them together."""
NEGLIGIBLE = 5e-4
"""A loss too small to notice; runs that are long enough tell any difference from 0."""


@dataclass(frozen=True)
class Compared:
    """The value of a cell that has compared policies with a first one; nothing is known if it failed."""

    value: Any
    base: str = "wham"

    @property
    def results(self) -> Mapping[str, Any]:
        """Simulations by policy, as `malleable simulate --json` has them."""
        return {} if failed(self.value) else self.value["results"]

    def result(self, policy: str) -> Any:
        """A policy's simulation; None if the cell failed."""
        return self.results[policy] if self.results else None

    def cost(self, policy: str) -> Estimate:
        """A policy's cost."""
        result = self.result(policy)
        return Estimate() if result is None else read_interval(result["cost"])

    def stable(self, policy: str) -> bool:
        """Whether a policy kept up with the jobs."""
        result = self.result(policy)
        return result is not None and bool(result["stable"])

    def apart(self, policy: str) -> Estimate:
        """By how much a policy costs more than the first one."""
        if failed(self.value) or policy == self.base:
            return Estimate()
        return read_interval(self.value["differences"][policy])

    def share(self, policy: str) -> Estimate:
        """The same as a share of what the first one costs."""
        return Estimate() if failed(self.value) else self.apart(policy).over(self.cost(self.base).mean)


class Gain(NamedTuple):
    """How much less (below 0) or more than another policy one costs, as a share of the other's cost."""

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
        return self.of.scaled(100.0)


def gain(name: str, policy: str, value: Any, base: str = "wham") -> Gain:
    """The gain of a policy over `base` from the value of a cell that has compared them."""
    found = Compared(value, base)
    return Gain(name, found.share(policy), found.result(policy))


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
        f"{len(pairs)} comparisons: {worse} cost significantly more all told; one by one at 99 % "
        f"{alone} cost more at all and {cheaper} less; least favourable {worst.mean:+.2%} ({where.name}), "
        f"largest upper end {max(e.high for e, _ in pairs):+.2%}"
    )
    return Verdict(statement, False if worse else len(pairs) == len(gains) or None, text)


def gains_table(name: str, title: str, gains: Iterable[Gain]) -> Table:
    """One row per setting, with 99 % intervals one by one."""
    gains = list(gains)
    found = [one.at(LEVEL) for one in gains]
    columns = {
        "setting": tuple(one.name for one in gains),
        **interval_columns("relative difference", found, "low (99 %)", "high (99 %)"),
        "is": tuple(map(_word, found)),
        "jobs simulated": tuple(None if one.result is None else one.result["jobs"] for one in gains),
    }
    return Table(name, title, columns)


def _word(found: Estimate) -> str:
    return "costs less" if found.high < 0.0 else "costs more" if found.low > 0.0 else "not told apart"
