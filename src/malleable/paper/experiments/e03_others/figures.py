"""Figures and tables of e03_others."""

from __future__ import annotations

from math import nan
from typing import Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.e03_others.cells import (
    POLICIES,
)
from malleable.paper.experiments.e03_others.readings import (
    RIVALS,
    SETTLED,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.curves import Curve, high, low
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate


def costs_figure(known: Any, curves: dict[str, Curve], differences: Any) -> Figure:
    """Costs of the three policies, and how far EQUI and GREEDY stay above WHAM."""
    wham = curves["wham"]
    n = wham.x
    costs = [curve.series("both") for curve in curves.values()]
    costs += [
        Series(f"{POLICIES[p][0]}, limit" if p in RIVALS else "V*, the lower bound (WHAM's limit)", n,
               (known[p]["cost"],) * len(n), style="dashed", colour=POLICIES[p][1] if p in RIVALS else 6)
        for p in POLICIES
    ]  # fmt: skip
    above = [
        Series.of(POLICIES[p][0], n, _relative(differences[p], wham), "both", POLICIES[p][1]) for p in RIVALS
    ]
    above += [
        Series(f"{POLICIES[p][0]}, refined mean field", n, _predicted(p, known, n), style="dotted",
               colour=POLICIES[p][1])
        for p in RIVALS
    ]  # fmt: skip
    return Figure(
        "others",
        "WHAM, EQUI and GREEDY",
        "First: mean holding cost per job over the number of cores n at load 0.25, simulated with 95 % "
        "intervals; dashed lines are the mean-field limits. Second: by how much of WHAM's cost the rival "
        "costs more, from paired differences on the same jobs; dotted lines are what the refined mean field "
        "predicts for many cores.",
        (
            Panel(Axis("cores n", "log"), Axis("cost", "log"), tuple(costs)),
            Panel(Axis("cores n", "log"), Axis("cost / cost of WHAM − 1", "log"), tuple(above)),
        ),
    )


def _relative(differences: Any, wham: Curve) -> list[Estimate]:
    return [
        Estimate(d.mean / w.mean, d.low / w.mean, d.high / w.mean) if d.low > 0.0 else Estimate()
        for d, w in zip(differences, wham.simulated, strict=True)
    ]


def _predicted(policy: str, known: Any, n: tuple[float, ...]) -> tuple[float, ...]:
    """The refined mean field's ratio to WHAM, where it makes sense: from 64 cores on."""
    costs = [[known[p]["cost"] + known[p]["coefficient"] / x for x in n] for p in (policy, "wham")]
    return tuple(theirs / ours - 1.0 if x >= 64 else nan for x, theirs, ours in zip(n, *costs, strict=True))


def differences_table(cores: tuple[int, ...], wham: Curve, differences: Any) -> Table:
    """Differences from WHAM by number of cores."""
    columns: dict[str, tuple[Any, ...]] = {"cores": cores}
    for policy, found in differences.items():
        name = POLICIES[policy][0]
        columns |= {
            f"{name} − WHAM": tuple(d.mean for d in found),
            f"{name} − WHAM low": tuple(map(low, found)),
            f"{name} − WHAM high": tuple(map(high, found)),
            f"{name} − WHAM, share of WHAM": tuple(
                d.mean / w.mean for d, w in zip(found, wham.simulated, strict=True)
            ),
        }
    return Table("others-differences", "Paired differences of cost (95 %)", columns)


def limits_table(known: Any, curves: dict[str, Curve], differences: Any) -> Table:
    """Limits by theory beside those that simulation points to."""
    cores = curves["wham"].cores
    costs = [ev.limit(cores, curves[p].simulated, SETTLED)[0] for p in POLICIES]
    beyond = [ev.limit(cores, differences[p], SETTLED)[0] if p in RIVALS else Estimate() for p in POLICIES]
    columns = {
        "policy": tuple(name for name, _ in POLICIES.values()),
        "mean-field limit": tuple(known[p]["cost"] for p in POLICIES),
        "over V*": tuple(known[p]["cost"] / known["bound"] for p in POLICIES),
        "1/n coefficient": tuple(known[p]["coefficient"] for p in POLICIES),
        "extrapolated": tuple(e.mean for e in costs),
        "extrapolated low": tuple(map(low, costs)),
        "extrapolated high": tuple(map(high, costs)),
        "extrapolated − WHAM": tuple(e.mean for e in beyond),
        "extrapolated − WHAM low": tuple(map(low, beyond)),
        "extrapolated − WHAM high": tuple(map(high, beyond)),
    }
    return Table("others-limits", "Limits for many cores (99.9 %)", columns)
