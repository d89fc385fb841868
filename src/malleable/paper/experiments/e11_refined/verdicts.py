"""Verdicts of e11_refined: what its numbers bear out."""

from __future__ import annotations

from math import isnan, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Effort, Verdict, failed
from malleable.paper.experiments.e11_refined.cells import POLICIES, WORKLOADS, simulated_cores
from malleable.paper.experiments.e11_refined.readings import error
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from malleable.paper.contracts import Values

    Curves = Mapping[tuple[str, str], list[Any]]
SETTLED = 128
"""From this many cores on, rates and limits are looked at."""
SQUARE = 0.4
"""How far from −2 the exponent of the error may be."""
RIGHT = 0.02
"""Relative error of a coefficient, and of a cost, that counts as small."""


def _settled(curves: Curves) -> dict[str, list[Any]]:
    """By policy, with exponential sizes: the costs on so many cores that the first order counts."""
    kept = {p: [v for v in curves["exponential", p] if v["cores"] >= SETTLED] for p in POLICIES}
    return {policy: found for policy, found in kept.items() if len(found) >= 3}


def coefficients(curves: Curves) -> Verdict:
    """Extrapolate n·(exact − limit) through the last three n and compare it with the coefficient."""
    statement = "n·(cost − limit) tends to the coefficient of the refined mean field"
    texts, off = [], []
    for policy, found in _settled(curves).items():
        last = found[-3:]
        x = np.array([1.0 / v["cores"] for v in last])
        y = np.array([v["cores"] * (v["exact"] - v["limit"]) for v in last])
        limit, aim = float(np.polyfit(x, y, 2)[-1]), last[-1]["coefficient"]
        off.append(abs(limit / aim - 1.0))
        texts.append(f"{POLICIES[policy][0]} {limit:.4f} for {aim:.4f}")
    if not off:
        return Verdict(statement, None, "too few points")
    text = f"extrapolated: {', '.join(texts)}; worst {max(off):.2%} off"
    return Verdict(statement, max(off) <= RIGHT, text)


def second_order(curves: Curves) -> Verdict:
    """The slope of log error over log n, between the first and the last n that count."""
    statement = "The error of the refined mean field falls like 1/n², that of the mean field like 1/n"
    first, second = ([_slope(f, key) for f in _settled(curves).values()] for key in ("limit", "refined"))
    if not first:
        return Verdict(statement, None, "too few points")
    holds = all(abs(s + 2.0) <= SQUARE for s in second) and all(abs(s + 1.0) <= SQUARE / 2 for s in first)
    text = (
        f"exponents from n = {SETTLED} on: refined {min(second):.2f} to {max(second):.2f}, mean field "
        f"{min(first):.2f} to {max(first):.2f}"
    )
    return Verdict(statement, holds, text)


def _slope(found: list[Any], key: str) -> float:
    first, last = found[0], found[-1]
    return log(abs(error(last, key) / error(first, key))) / log(last["cores"] / first["cores"])


def refined_is_closer(found: list[Any]) -> Verdict:
    """Against the mean field alone, at every n."""
    statement = (
        "On any number of cores the refined mean field is closer to the exact cost than the mean field"
    )
    factors = [(abs(error(v, "limit")) / abs(error(v)), v) for v in found]
    factor, worst = min(factors, key=lambda one: one[0])
    text = f"{len(found)} settings; at least {factor:.1f} times closer (n = {worst['cores']})"
    return Verdict(statement, factor > 1.0, text)


def honest(found: list[Any]) -> Verdict:
    """Whether `applies` can be relied on."""
    statement = f"Where the refined mean field says that it applies, it is off by at most {RIGHT:.0%}"
    groups = {flag: [v for v in found if v["applies"] is flag] for flag in (True, False)}
    worst = {flag: max(group, key=lambda v: abs(error(v)), default=None) for flag, group in groups.items()}
    texts = [
        f"{words}: {len(groups[flag])} times, at worst {error(v):+.2%} (n = {v['cores']}, ρ = {v['load']:g})"
        for flag, words in ((True, "applies"), (False, "does not"))
        if (v := worst[flag]) is not None
    ]
    top = worst[True]
    return Verdict(statement, None if top is None else abs(error(top)) <= RIGHT, "; ".join(texts))


def order_is_right(curves: Curves) -> Verdict:
    """Which of two policies is the cheaper: the same by prediction and by exact cost?"""
    right = wrong = 0
    where = ""
    for name in WORKLOADS:
        by_cores: dict[int, dict[str, Any]] = {}
        for policy in POLICIES:
            for v in curves[name, policy]:
                by_cores.setdefault(v["cores"], {})[policy] = v
        for n, found in by_cores.items():
            exact, guess = (_ranked(found, key) for key in ("exact", "refined"))
            if exact == guess:
                right += len(found) > 1
            else:
                wrong += 1
                where += f"; not at n = {n}, {WORKLOADS[name][0]}"
    return Verdict(
        "The refined mean field puts the policies in the order of their exact costs",
        wrong == 0 if right + wrong else None,
        f"right in {right} of {right + wrong} settings{where}",
    )


def _ranked(found: Mapping[str, Any], key: str) -> list[str]:
    return sorted(found, key=lambda policy: float(found[policy][key]))


def _runs(effort: Effort, values: Values) -> list[tuple[int, str, Any]]:
    found = [(n, values[f"simulated-{n}"]) for n in simulated_cores(effort)]
    return [(n, p, r) for n, v in found if not failed(v) for p, r in v["results"].items()]


def agrees(effort: Effort, values: Values) -> Verdict:
    """Whether simulation finds the exact costs."""
    return ev.agreement(
        "Simulated costs are the exact ones",
        [
            ev.Case(f"{POLICIES[p][0]} on {n} cores", read_interval(r["cost"]), r, known["exact"])
            for n, p, r in _runs(effort, values)
            if (known := values.get(f"paper-{p}-{n}")) is not None
        ],
    )


def predicts(effort: Effort, values: Values) -> Verdict:
    """On many cores, where there is no exact cost: the simulated one, up to its interval."""
    statement = f"From 256 cores on, refined costs are at most {RIGHT / 10:.1%} outside simulated intervals"
    off = []
    for n, p, result in _runs(effort, values):
        if n >= 256:
            cost = ev.widened(read_interval(result["cost"]), result, ev.SURE)
            guess = values[f"predicted-{p}-{n}"]["refined"]
            off.append((max(cost.low - guess, guess - cost.high, 0.0) / guess, guess / cost.mean - 1.0, n, p))
    if not off or any(isnan(one[0]) for one in off):
        return Verdict(statement, None, "not simulated to an interval")
    beyond, mean, n, p = max(off, key=lambda one: (one[0], abs(one[1])))
    text = f"farthest: {POLICIES[p][0]} on {n} cores, {mean:+.3%} of the simulated mean, {beyond:.3%} outside"
    return Verdict(statement, beyond <= RIGHT / 10, text)
