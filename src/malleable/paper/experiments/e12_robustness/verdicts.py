"""Verdicts of e12_robustness: what its numbers bear out."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e12_robustness.cells import FACTORS, SIZE_CORES, misled_key
from malleable.paper.experiments.e12_robustness.readings import Small, cost_of, named, scvs, share_of
from malleable.paper.experiments.e12_robustness.settings import (
    SIZES,
)
from malleable.paper.experiments.shared import evidence as ev

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
CHEAP = 0.02
"""Share of WHAM's cost that wrong speedups, or whole cores, may cost to count as cheap."""
NEAR = 0.005
"""Share by which the refined mean field may miss."""


def sized(values: Values) -> list[tuple[str, int, Any]]:
    """Comparisons with other sizes: law, number of cores, values."""
    return [
        (name, n, values[f"sizes-{i}-{n}"])
        for i, name in enumerate(SIZES)
        for n in SIZE_CORES
        if f"sizes-{i}-{n}" in values
    ]


def wham_is_better(statement: str, policy: str, pairs: list[tuple[str, Any]]) -> Verdict:
    """Decided in every setting by the interval of the paired difference."""
    apart = {name: share_of(found, policy) for name, found in pairs}
    worse = [name for name, d in apart.items() if d.high < 0.0]
    open_ = [name for name, d in apart.items() if d.low <= 0.0 <= d.high]
    least = min(apart, key=lambda name: apart[name].mean)
    most = max(apart, key=lambda name: apart[name].mean)
    text = (
        f"better in {len(apart) - len(worse) - len(open_)} of {len(apart)} settings; it costs "
        f"{apart[least].mean:.2%} ({least}) to {apart[most].mean:.2%} ({most}) more than WHAM"
    )
    text += "".join(f"; {w}: {', '.join(names)}" for w, names in (("worse", worse), ("open", open_)) if names)
    return Verdict(statement, False if worse else None if open_ else True, text)


def predicted_verdict(values: Values) -> Verdict:
    """Whether the refined mean field gives WHAM's cost for every variability of arrivals."""
    off, told = [], []
    for scv in scvs(values):
        found, aim = values[f"arrivals-{scv}"], values[f"predicted-{scv}"]["wham"]["cost"]
        wide = ev.widened(cost_of(found, "wham"), found["results"]["wham"], ev.SURE)
        off.append(max(abs(wide.mean - aim) - wide.half_width, 0.0) / aim)
        told.append(f"SCV {scv:g}: {wide.mean:.5f} ± {wide.half_width:.5f}, predicted {aim:.5f}")
    known = all(isfinite(v) for v in off)
    text = "; ".join(told)
    return Verdict(
        "The refined mean field predicts what bursty arrivals cost", max(off) <= NEAR if known else None, text
    )


def sizes_verdicts(values: Values) -> list[Verdict]:
    """Whether WHAM's cost tends to V* for every law of sizes."""
    made = []
    for name in SIZES:
        mine = [(n, cost_of(found, "wham")) for label, n, found in sized(values) if label == name]
        limit, points = ev.limit([n for n, _ in mine], [cost for _, cost in mine], 0)
        lowest = values["limits"]["bound"]
        n, last = mine[-1]
        ratio = f"{last.mean / lowest:.4f} ± {last.half_width / lowest:.4f}"
        note = f"{points} points; cost over V* {ratio} on {n} cores"
        made.append(ev.tends_to(f"WHAM's cost tends to V* with {name} sizes", limit, lowest, 0.02, note))
    return made


def costs_little(statement: str, rows: list[Small]) -> Verdict:
    """Whether the whole interval lies below the limit in every setting."""
    worst = max(rows, key=lambda row: row[3].high)
    text = f"{len(rows)} settings, most in “{worst[1]}”: {worst[3].mean:+.2%} ± {worst[3].half_width:.2%}"
    above = any(row[3].low > CHEAP for row in rows)
    return Verdict(statement, False if above else True if worst[3].high <= CHEAP else None, text)


def limits_verdict(values: Values) -> Verdict:
    """Whether wrong speedups cost little in the mean field."""
    known, lowest = values["limits"], values["limits"]["bound"]
    ratios = {f: known[misled_key(f)] / lowest - 1.0 for f in FACTORS}
    worst = max(ratios, key=lambda f: ratios[f])
    inside = all(-1e-9 <= v <= CHEAP for v in ratios.values())
    text = f"{len(ratios)} combinations, {min(ratios.values()):.2%} to {ratios[worst]:.2%} ({named(worst)})"
    return Verdict(f"Nor do they cost more than {CHEAP:.0%} in the limit of many cores", inside, text)


def blind_verdict(rows: list[Small]) -> Verdict:
    """Whether knowing sizes ever hurts; how much it helps is for the table."""
    told = "; ".join(f"{name}: {d.mean:+.2%} ± {d.half_width:.2%}" for _, name, _, d in rows)
    hurts = any(d.high < 0.0 for *_, d in rows)
    helps = any(d.low > 0.0 for *_, d in rows)
    return Verdict(
        "Not knowing job sizes costs something at high load", False if hurts else helps or None, told
    )
