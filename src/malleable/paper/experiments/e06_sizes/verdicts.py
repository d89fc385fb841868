"""Verdicts of e06_sizes: what its numbers bear out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e06_sizes.cells import (
    NEAR,
)
from malleable.paper.experiments.e06_sizes.readings import (
    Ratios,
    share_of,
    width_of,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate
SETTLED = 128
"""From this many cores on, a + b/n + c/n² is fitted to differences with one class."""
CLOSE, PRECISE = 0.03, 0.1
"""How near to the predicted share a measured one must be; precision of a limit that counts."""


def widths_gather(i: int, name: str, cores: tuple[int, ...], values: Values) -> Verdict:
    """Shares must grow with n and end where the mean field's fluctuations put them, which tends to 1."""
    found, expected = share_of(0, i, cores, values), values["predicted"]["shares"][0][i]
    told = ", ".join(f"{s.mean:.1%} on {n}" for n, s in zip(cores, found, strict=True))
    rises = found[-1].low > found[0].high and not any(b.high < a.low for a, b in pairwise(found))
    close = abs(found[-1].mean - expected[-1]) <= max(CLOSE, found[-1].half_width)
    text = f"{told}; the mean field's fluctuations put {expected[-1]:.1%} there on {cores[-1]} cores"
    statement = (
        f"WHAM gathers the work of {name} within {NEAR[0]:.0%} of k* = {width_of(i, values):.4g} cores"
    )
    return Verdict(statement, rises and close, text)


def loses_verdict(ratios: Ratios) -> Verdict:
    """Its ratio to WHAM must be above 1 on many cores, and must not come down again."""
    told = ", ".join(f"{ratio.mean:.4f} on {n}" for n, ratio in ratios)
    comes_down = any(b.high < a.low for (_, a), (_, b) in pairwise(ratios))
    last = ratios[-1][1]
    text = f"cost over WHAM's {told} cores; last between {last.low:.4f} and {last.high:.4f}"
    holds = False if comes_down or last.high < 1.0 else last.low > 1.0 or None
    return Verdict("A-heSRPT, which goes by size, loses to WHAM on many cores", holds, text)


def limit_verdict(cores: tuple[int, ...], values: Values, last: tuple[int, Estimate]) -> Verdict:
    """The limit of the paired difference against that of the fluid equation of `_by_size`."""
    known = values[f"levelled-{cores[-1]}"]
    aim = (known["ratio"] - 1.0) * known["limit"]
    differences = [read_interval(values[f"levelled-{n}"]["differences"]["levelled"]) for n in cores]
    found, points = ev.limit(cores, differences, SETTLED)
    told = f"cost over WHAM's {last[1].mean:.4f} on {last[0]} cores, in the limit {known['ratio']:.4f}"
    statement = "With one class, levelled heSRPT stays above WHAM by the limit of its fluid equation"
    verdict = ev.tends_to(statement, found, aim, PRECISE, f"{points} points; {told}")
    return Verdict(statement, verdict.holds and found.low > 0.0, verdict.measured)


def few_cores_verdict(first: tuple[int, Estimate]) -> Verdict:
    """Whether sizes help on few cores."""
    n, ratio = first
    text = f"cost over WHAM's {ratio.mean:.4f} ({ratio.low:.4f} to {ratio.high:.4f}) on {n} cores"
    holds = True if ratio.high < 1.0 else False if ratio.low > 1.0 else None
    return Verdict("With one class and few cores sizes do help: levelled heSRPT beats WHAM", holds, text)
