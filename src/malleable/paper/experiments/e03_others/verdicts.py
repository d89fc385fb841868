"""Verdicts of e03_others: what its numbers bear out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e03_others.cells import (
    POLICIES,
)
from malleable.paper.experiments.e03_others.readings import (
    RIVALS,
    SETTLED,
)
from malleable.paper.experiments.shared import evidence as ev

if TYPE_CHECKING:
    from malleable.paper.experiments.shared.curves import Curve

PRECISE, PRECISE_DIFFERENCE = 0.02, 0.25
"""Relative half-widths to which limits of costs, and of differences, must be known to count."""


def same_limit(known: Any) -> Verdict:
    """Whether the mean field of WHAM costs V*, and that of the others more."""
    lowest, cost = known["bound"], known["wham"]["cost"]
    ratios = {POLICIES[p][0]: known[p]["cost"] / lowest for p in RIVALS}
    told = ", ".join(f"{name} {ratio:.6f}" for name, ratio in ratios.items())
    return Verdict(
        "In the mean-field limit WHAM costs V*, EQUI and GREEDY cost more",
        abs(cost / lowest - 1.0) < 1e-9 and all(ratio > 1.0 + 1e-9 for ratio in ratios.values()),
        f"V* = {lowest:.10f}, WHAM's limit {cost:.10f}; limits over V*: {told}",
    )


def wham_converges(known: Any, wham: Curve) -> Verdict:
    """Whether WHAM's costs tend to the bound."""
    found, points = ev.limit(wham.cores, wham.simulated, SETTLED)
    note = f"{points} points; {wham.simulated[-1]} on {wham.cores[-1]} cores"
    return ev.tends_to("Simulated WHAM tends to V*", found, known["bound"], PRECISE, note)


def stays_above(policy: str, known: Any, cores: tuple[int, ...], differences: Any) -> Verdict:
    """The limit of the paired difference must be the mean field's, and not 0."""
    aim = known[policy]["cost"] - known["wham"]["cost"]
    found, points = ev.limit(cores, differences, SETTLED)
    ratio = 1.0 + found.mean / known["bound"]
    note = (
        f"{points} points; limit ratio {ratio:.5f}, in theory {known[policy]['cost'] / known['bound']:.5f}; "
        f"difference on {cores[-1]} cores {differences[-1]}"
    )
    statement = f"Simulated {POLICIES[policy][0]} stays above WHAM by its mean-field limit"
    verdict = ev.tends_to(statement, found, aim, PRECISE_DIFFERENCE, note)
    holds = verdict.holds and aim > 0.0 and found.low > 0.0
    return Verdict(statement, holds, verdict.measured)


def wham_is_better(policy: str, cores: tuple[int, ...], differences: Any) -> Verdict:
    """Decided for every n by the interval of the paired difference."""
    better = [n for n, d in zip(cores, differences, strict=True) if d.low > 0.0]
    worse = [n for n, d in zip(cores, differences, strict=True) if d.high < 0.0]
    open_ = [n for n in cores if n not in {*better, *worse}]
    told = "; ".join(
        f"{word} for n = {', '.join(map(str, group))}"
        for word, group in (("better", better), ("worse", worse), ("undecided", open_))
        if group
    )
    least = min(differences, key=lambda d: d.low / max(d.half_width, 1e-300))
    text = f"{told}; least clear difference {least.mean:.3g} ({least.low:.3g} to {least.high:.3g})"
    statement = f"WHAM is better than {POLICIES[policy][0]} at every n"
    return Verdict(statement, False if worse else None if open_ else True, text)
