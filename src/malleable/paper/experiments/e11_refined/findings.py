"""What the cells of e11_refined show: figures, tables and verdicts."""

from __future__ import annotations

from math import isnan, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e11_refined.cells import (
    CORES,
    LOAD,
    LOAD_CORES,
    LOADS,
    QUICK_CORES,
    QUICK_LOADS,
    WORKLOADS,
    affordable,
    simulated_cores,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import stacked
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.policies import POLICIES
from malleable.paper.simulation_cells import PAPERS
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Values

    Curves = Mapping[tuple[str, str], list[Any]]

SIMULATED = {"wham": 8, "equi": 10, "greedy": 11}
"""Colours of simulated costs: those of the policies, with other dashes."""
SETTLED = 128
"""From this many cores on, rates and limits are looked at."""
SQUARE = 0.4
"""How far from −2 the exponent of the error may be."""
RIGHT = 0.02
"""Relative error of a coefficient, and of a cost, that counts as small."""
CHOICES = {
    "exact costs": "Markov chain of the counts by class and phase; the table says what its truncation loses",
    "overload": "in the chain, WHAM orders by c/E[X] and GREEDY shares in time when N > n",
    "n": "exact up to 128 cores (512 with exponential sizes), simulated up to 1024; load 0.25 unless varied",
    "rates": f"slopes and limits from n ≥ {SETTLED} on",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Costs and errors over n and load, and what they say."""
    chosen = QUICK_CORES if effort.quick else CORES
    curves = {
        (name, policy): [values[f"{name}-{policy}-{n}"] for n in affordable(effort, name, policy, cores)]
        for name, cores in chosen.items()
        for policy in PAPERS
    }
    loads = [values[f"load-{load:g}"] for load in (QUICK_LOADS if effort.quick else LOADS)]
    return Findings(
        title="Costs at finite n, without simulation",
        source="beyond the paper (refined mean field of Gast and Van Houdt)",
        statement=(
            "The mean field gives the cost on infinitely many cores. At finite n random fluctuations add to "
            "it: to first order a constant over n, which can be computed from the equation's derivatives. "
            "How many cores does it take for this to be a good prediction, and does it know when it is not?"
        ),
        figures=(
            costs(simulated_cores(effort), values, curves),
            errors(curves),
            over_load(loads),
        ),
        tables=(table(curves), load_table(loads)),
        verdicts=(
            coefficients(curves),
            second_order(curves),
            refined_is_closer([*(v for c in curves.values() for v in c)]),
            honest([*(v for c in curves.values() for v in c), *loads]),
            order_is_right(curves),
            agrees(effort, values),
            predicts(effort, values),
        ),
        remarks=(
            (
                "The correction is the first term of a series in 1/n. On few cores the next terms are as "
                "large; the correction is then too high, and further up, where they change sign, too low."
            ),
            (
                "At low load so few jobs are present that their number fluctuates by as much as its mean. "
                "No expansion around a fixed point is of use there, whether or not the demand has a kink."
            ),
        ),
    )


def error(value: Mapping[str, Any], key: str = "refined") -> float:
    """By which share a prediction is off the exact cost."""
    return float(value[key] / value["exact"] - 1.0)


def costs(simulated: Sequence[int], values: Values, curves: Curves) -> Figure:
    """Exact, simulated, refined and mean-field costs by number of cores."""
    panels = []
    for workload, (title, _) in WORKLOADS.items():
        series = []
        for policy in PAPERS:
            name, colour = POLICIES[policy]
            found = curves[workload, policy]
            more = [values[f"predicted-{policy}-{n}"] for n in simulated] if workload == "paper" else []
            guess = {float(v["cores"]): v["refined"] for v in sorted([*found, *more], key=_cores)}
            x, exact = tuple(map(float, map(_cores, found))), tuple(v["exact"] for v in found)
            series += [
                Series(f"{name}, refined", tuple(guess), tuple(guess.values()), colour=colour),
                Series(f"{name}, exact", x, exact, style="points", colour=colour),
            ]
            if workload == "paper":
                series.append(_simulated_series(simulated, values, policy))
        panels.append(Panel(Axis("cores n", "log"), Axis("mean cost per job"), tuple(series), title=title))
    return Figure(
        "refined-costs",
        "Predicted, exact and simulated costs",
        f"Mean holding cost over the number of cores at load {LOAD:g}. The refined mean field needs no more "
        "than the fixed point and its derivatives.",
        tuple(panels),
    )


def _cores(value: Mapping[str, Any]) -> int:
    return int(value["cores"])


def _simulated_series(simulated: Sequence[int], values: Values, policy: str) -> Series:
    found = {float(n): Compared(values[f"simulated-{n}"]) for n in simulated}
    costs = {n: one.cost(policy) for n, one in found.items() if one.results}
    name, colour = f"{POLICIES[policy].name}, simulated", SIMULATED[policy]
    return Series.of(name, costs, costs.values(), "points", colour)


def errors(curves: Curves) -> Figure:
    """Relative errors of the approximations by number of cores."""
    panels = []
    for workload, (title, _) in WORKLOADS.items():
        series = []
        for policy in PAPERS:
            name, colour = POLICIES[policy]
            found = curves[workload, policy]
            x = tuple(float(v["cores"]) for v in found)
            for key, kind, style in (("refined", "refined", "both"), ("limit", "mean field", "dashed")):
                y = tuple(abs(error(v, key)) for v in found)
                series.append(Series(f"{name}, {kind}", x, y, style=style, colour=colour))
        panels.append(
            Panel(Axis("cores n", "log"), Axis("relative error", "log"), tuple(series), title=title)
        )
    return Figure(
        "refined-errors",
        "Errors of the predictions",
        "Distance from the exact cost, relative to it. Where the error of the refined mean field changes "
        "sign, it is small by chance.",
        tuple(panels),
    )


def over_load(loads: list[Any]) -> Figure:
    """Relative errors by load."""
    x = tuple(v["load"] for v in loads)
    series = (
        Series("refined", x, tuple(error(v) for v in loads), style="both", colour=0),
        Series("mean field", x, tuple(error(v, "limit") for v in loads), style="both", colour=6),
    )
    marks = tuple((v["load"], error(v), "does not apply") for v in loads if not v["applies"])
    panel = Panel(Axis("system load ρ"), Axis("relative error"), series, marks=marks)
    return Figure(
        "refined-load",
        "Errors over the load",
        f"WHAM on {LOAD_CORES} cores with exponential sizes. Marked: the result says that it does not apply, "
        "because a class is near a kink of its demand or jobs outnumber cores too often.",
        (panel,),
    )


def table(curves: Curves) -> Table:
    """Exact costs and approximations."""
    parts = [
        {
            "workload": (WORKLOADS[name][0],) * len(found),
            "policy": (POLICIES[policy].name,) * len(found),
            **_columns(found),
        }
        for (name, policy), found in curves.items()
    ]
    return Table("refined", "Exact and predicted costs", stacked(parts))


def load_table(loads: list[Any]) -> Table:
    """Exact costs and approximations by load."""
    return Table("refined-load", f"WHAM on {LOAD_CORES} cores over the load", _columns(loads))


def _columns(found: list[Any]) -> dict[str, tuple[Any, ...]]:
    return {
        "cores": tuple(v["cores"] for v in found),
        "load": tuple(v["load"] for v in found),
        "exact": tuple(v["exact"] for v in found),
        "mean field": tuple(v["limit"] for v in found),
        "refined": tuple(v["refined"] for v in found),
        "error": tuple(error(v) for v in found),
        "applies": tuple("yes" if v["applies"] else v["reason"] for v in found),
        "lost by the chain": tuple(v["truncation"] for v in found),
    }


def _settled(curves: Curves) -> dict[str, list[Any]]:
    """By policy, with exponential sizes: the costs on so many cores that the first order counts."""
    kept = {p: [v for v in curves["exponential", p] if v["cores"] >= SETTLED] for p in PAPERS}
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
        texts.append(f"{POLICIES[policy].name} {limit:.4f} for {aim:.4f}")
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
    for workload, (title, _) in WORKLOADS.items():
        by_cores: dict[int, dict[str, Any]] = {}
        for policy in PAPERS:
            for v in curves[workload, policy]:
                by_cores.setdefault(v["cores"], {})[policy] = v
        for n, found in by_cores.items():
            exact, guess = (_ranked(found, key) for key in ("exact", "refined"))
            if exact == guess:
                right += len(found) > 1
            else:
                wrong += 1
                where += f"; not at n = {n}, {title}"
    return Verdict(
        "The refined mean field puts the policies in the order of their exact costs",
        wrong == 0 if right + wrong else None,
        f"right in {right} of {right + wrong} settings{where}",
    )


def _ranked(found: Mapping[str, Any], key: str) -> list[str]:
    return sorted(found, key=lambda policy: float(found[policy][key]))


def _runs(effort: Effort, values: Values) -> list[tuple[int, str, Any]]:
    found = {n: Compared(values[f"simulated-{n}"]).results for n in simulated_cores(effort)}
    return [(n, policy, result) for n, results in found.items() for policy, result in results.items()]


def agrees(effort: Effort, values: Values) -> Verdict:
    """Whether simulation finds the exact costs."""
    return ev.agreement(
        "Simulated costs are the exact ones",
        [
            ev.Case(f"{POLICIES[p].name} on {n} cores", read_interval(r["cost"]), r, known["exact"])
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
    text = (
        f"farthest: {POLICIES[p].name} on {n} cores, {mean:+.3%} of the simulated mean, {beyond:.3%} outside"
    )
    return Verdict(statement, beyond <= RIGHT / 10, text)
