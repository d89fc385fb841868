"""Verdicts of e13_tails: what its numbers bear out."""

from __future__ import annotations

from typing import Any

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e13_tails.cells import (
    POLICIES,
    VARIANTS,
    WHAM,
)
from malleable.paper.experiments.e13_tails.readings import (
    CLASSES,
    LEVELS,
    is_stable,
)
from malleable.results.class_result import read_interval

LAST = len(LEVELS) - 1


def cheapest(load: float, found: dict[str, Any]) -> Verdict:
    """Whether every rival costs more, for sure; one without a steady state does."""
    rivals = {p: v for p, v in found.items() if p not in VARIANTS}
    apart = {p: read_interval(v["difference"]) for p, v in rivals.items() if is_stable(v)}
    better = [p for p, d in apart.items() if d.high < 0.0]
    open_ = [p for p, d in apart.items() if d.low <= 0.0 <= d.high]
    cost = found[WHAM]["result"]["cost"]["mean"]
    others = [POLICIES[p] for p, v in rivals.items() if not is_stable(v)]
    nearest = min(apart, key=lambda p: apart[p].mean)
    d = apart[nearest]
    text = f"nearest is {POLICIES[nearest]}, {d.mean / cost:+.2%} ± {d.half_width / cost:.2%}"
    text += f"; open: {', '.join(POLICIES[p] for p in open_)}" if open_ else ""
    text += f"; without a steady state: {', '.join(others)}" if others else ""
    statement = f"At load {load} WHAM has a lower mean cost than all {len(rivals)} rivals"
    return Verdict(statement, False if better else None if open_ else True, text)


def undominated(load: float, found: dict[str, Any]) -> Verdict:
    """No rival may be better in the 99th percentile of all classes at once."""
    beaten, open_, told = [], [], []
    for policy, value in found.items():
        if policy in VARIANTS or not is_stable(value):
            continue
        apart = [read_interval(value["apart"]["response"][c][LAST]) for c in CLASSES]
        if all(d.high < 0.0 for d in apart):
            beaten.append(POLICIES[policy])
        elif not any(d.low > 0.0 for d in apart):
            open_.append(POLICIES[policy])
        shorter = [c for c, d in zip(CLASSES, apart, strict=True) if d.high < 0.0]
        if shorter:
            told.append(f"{POLICIES[policy]} ({', '.join(shorter)})")
    text = f"shorter in some class: {'; '.join(told)}" if told else "no rival is shorter in any class"
    text += f"; shorter in all: {', '.join(beaten)}" if beaten else ""
    text += f"; longer in none for sure: {', '.join(open_)}" if open_ else ""
    statement = f"At load {load} no rival has shorter 99th percentiles than WHAM in all classes"
    return Verdict(statement, False if beaten else None if open_ else True, text)
