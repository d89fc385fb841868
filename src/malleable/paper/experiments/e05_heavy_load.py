"""Near full load there is no room for parallelism: the proposition on ρ → 1."""

from __future__ import annotations

from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Table, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._curves import drawn, high, low
from malleable.paper.experiments._widths import measured
from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate

POLICIES = {"wham": ("WHAM", 0), "equi": ("EQUI", 2), "greedy": ("GREEDY", 3)}
WIDTHS = (1.25, 2.0, 4.0)
"""k0: edges of the histogram's bins, so that shares beyond them are exact counts."""
SHOWN = 1
"""Position of the k0 for which all policies are drawn."""
CORES = 64
LOADS = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
QUICK_LOADS = (0.5, 0.8, 0.95)
GROWING = (16, 64, 256, 1024, 4096)
QUICK_GROWING = (16, 64, 256)
SEED = 5

CHOICES = {
    "regimes": "ρ → 1 on 64 cores, and n → ∞ with ρ = 1 − 1/√n (Halfin–Whitt)",
    "k0": "1.25, 2 and 4 cores",
    "policies": "WHAM, EQUI, GREEDY; the proposition is about any policy under which the system is stable",
    "run length": "half as many jobs as the effort has; the first fifth is left out",
    "intervals": "20 batches, 95 %, lengthened for correlation",
}


def cells(effort: Effort) -> list[Cell]:
    """Shares of the work by policy, on 64 cores over the load and over n; the bounds."""
    points = _points(effort)
    jobs = effort.jobs // 2
    windows = [[None, k, 1e12] for k in WIDTHS]
    made = [Cell("bounds", bounds, {"loads": [load for _, load in points]}, 0.1)]
    made += [
        Cell(
            f"{policy}-{n}-{load:.6f}",
            measured,
            {"policy": policy, "cores": n, "load": load, "jobs": jobs, "seed": SEED, "windows": windows},
            jobs * (1.0 + n / 3000) / 2e6,
        )
        for policy in POLICIES
        for n, load in points
    ]
    return made


def _points(effort: Effort) -> list[tuple[int, float]]:
    """(n, ρ) of both regimes."""
    return [*_over_load(effort), *(p for p in _over_cores(effort) if p not in _over_load(effort))]


def _over_load(effort: Effort) -> list[tuple[int, float]]:
    return [(CORES, load) for load in (QUICK_LOADS if effort.quick else LOADS)]


def _over_cores(effort: Effort) -> list[tuple[int, float]]:
    return [(n, 1.0 - n**-0.5) for n in (QUICK_GROWING if effort.quick else GROWING)]


def bounds(loads: list[float]) -> list[dict[str, Any]]:
    """At each load and k0, the most work that any stable policy can do on more than k0 cores.

    The paper: it takes k0/max s_i(k0) of core-time a unit at least, the rest at least 1, and there is 1/ρ:
    q ≤ (1/ρ − 1)/(k0/max s_i(k0) − 1). Sharper: class i takes k0/s_i(k0), so fill up the best class first;
    none can have more than its share of the work.
    """
    found = []
    for load in loads:
        workload = paper_workload(CORES, load)
        parts = workload.loads / workload.total_load
        spare = 1.0 / load - 1.0
        for k in WIDTHS:
            extra = np.array([k / float(s(k)) - 1.0 for s in workload.speedups])
            left, sharp = spare, 0.0
            for i in np.argsort(extra):
                taken = min(parts[i], left / extra[i])
                left, sharp = left - taken * extra[i], sharp + float(taken)
            found.append({"load": load, "k0": k, "paper": min(1.0, spare / extra.min()), "sharp": sharp})
    return found


def findings(effort: Effort, values: Values) -> Findings:
    """The shares beside their bounds, and what they say."""
    return Findings(
        title="Near full load almost nothing runs in parallel",
        source="Proposition: almost no parallelism happens as ρ → 1",
        statement=(
            "A job on many cores does less work per core. When the work that arrives needs nearly all cores "
            "even at one core a job, there is none to waste, so only a vanishing share of the work can be "
            "done on more than k0 cores, for any k0 > 1 and any policy that keeps the system stable. This "
            "is why the paper keeps the load fixed and lets the number of cores grow."
        ),
        figures=(_figure(effort, values),),
        tables=(_table(effort, values),),
        verdicts=(
            _below("paper", "The share beyond k0 is below the bound in the paper's proof", effort, values),
            _below("sharp", "It is below the sharper bound, too", effort, values),
            *(
                _vanishes(f"{where}: {POLICIES[policy][0]} does a vanishing share of its work on more than "
                          f"{WIDTHS[SHOWN]:g} cores", policy, points, values)
                for where, points in (
                    (f"On {CORES} cores", _over_load(effort)),
                    ("With ρ = 1 − 1/√n", _over_cores(effort)),
                )
                for policy in POLICIES
            ),
        ),
        remarks=(
            (
                "The paper defines ρ there without dividing by n. The bound needs ρ = Σ λ_i E[X_i]/n, as in "
                "the rest of the paper."
            ),
            (
                "The sharper bound is ours: the paper takes the best speedup for all work; each class's own, "
                "and no more than its share of the work, leaves less."
            ),
            (
                "A share of exactly zero has no logarithm and is not drawn; neither is a bound of 1, which "
                "says nothing."
            ),
        ),
    )  # fmt: skip


def _shares(policy: str, n: int, load: float, values: Values) -> list[Estimate]:
    return [ev.estimate(one) for one in values[f"{policy}-{n}-{load:.6f}"]["shares"]]


def _limits(values: Values) -> dict[tuple[float, float], Any]:
    return {(row["load"], row["k0"]): row for row in values["bounds"]}


def _below(kind: str, statement: str, effort: Effort, values: Values) -> Verdict:
    """No share may exceed the bound by more than its interval."""
    limits = _limits(values)
    rows = [
        (share, limits[load, k][kind], f"{POLICIES[policy][0]}, n = {n}, ρ = {load:.4g}, k0 = {k:g}")
        for policy in POLICIES
        for n, load in _points(effort)
        for k, share in zip(WIDTHS, _shares(policy, n, load, values), strict=True)
    ]
    told = [row for row in rows if row[1] < 1.0 - 1e-9] or rows
    tight, most, name = max(told, key=lambda row: row[0].mean / row[1])
    above = sum(share.low > limit for share, limit, _ in rows)
    text = f"{len(rows)} shares, {above} above; nearest {tight.mean:.4f} of at most {most:.4f} ({name})"
    return Verdict(statement, above == 0, text)


def _vanishes(statement: str, policy: str, points: list[tuple[int, float]], values: Values) -> Verdict:
    """The share must fall from the first point to the last and rise clearly at no step.

    That it ends at zero is the bound's part: a share below a bound that vanishes vanishes.
    """
    found = [_shares(policy, n, load, values)[SHOWN] for n, load in points]
    bound = [_limits(values)[load, WIDTHS[SHOWN]]["paper"] for _, load in points]
    told = ", ".join(f"{s.mean:.2%} at ρ = {load:.4g}" for s, (_, load) in zip(found, points, strict=True))
    rises = any(later.low > earlier.high for earlier, later in pairwise(found))
    above = any(share.low > most for share, most in zip(found, bound, strict=True))
    falls = found[-1].high < found[0].low
    text = f"{told}; bound {bound[0]:.1%} falling to {bound[-1]:.1%}"
    return Verdict(statement, False if rises or above else falls or None, text)


def _figure(effort: Effort, values: Values) -> Figure:
    limits, over = _limits(values), _over_load(effort)
    x = [1.0 - load for _, load in over]
    panels = [
        Panel(Axis("1 − ρ", "log"), Axis(f"share of work beyond k0, n = {CORES}", "log"),
              tuple(s for i, k in enumerate(WIDTHS) for s in (
                  drawn(f"WHAM, k0 = {k:g}", x, _positive([_shares("wham", *p, values)[i] for p in over]),
                        "both", i),
                  _bound(f"bound, k0 = {k:g}", x, [limits[load, k]["paper"] for _, load in over], i))))
    ]  # fmt: skip
    for title, points in (("1 − ρ", over), ("1 − ρ = 1/√n", _over_cores(effort))):
        x = [1.0 - load for _, load in points]
        shown = [
            drawn(name, x, _positive([_shares(policy, *p, values)[SHOWN] for p in points]), "both", colour)
            for policy, (name, colour) in POLICIES.items()
        ]
        shown += [
            _bound(f"{kind} bound", x, [limits[load, WIDTHS[SHOWN]][key] for _, load in points], 6 + i)
            for i, (kind, key) in enumerate((("paper's", "paper"), ("sharper", "sharp")))
        ]
        y = Axis(f"share of work beyond {WIDTHS[SHOWN]:g} cores", "log")
        panels.append(Panel(Axis(title, "log"), y, tuple(shown)))
    return Figure(
        "heavy-load",
        "Parallel work near full load",
        "Share of the work that is done on more than k0 cores, over the share 1 − ρ of the cores that is to "
        "spare; full load is on the left. First: WHAM on 64 cores for several k0, with the bound of the "
        "paper's proof. Second: all policies on 64 cores. Third: all policies with n growing and "
        "ρ = 1 − 1/√n. Intervals are 95 %.",
        tuple(panels),
    )


def _positive(shares: list[Estimate]) -> list[Estimate]:
    """A logarithmic axis has no place for zero."""
    return [share if share.low > 0.0 else type(share)() for share in shares]


def _bound(name: str, x: list[float], y: list[float], colour: int) -> Series:
    return Series(name, tuple(x), tuple(v if v < 1.0 else nan for v in y), style="dashed", colour=colour)


def _table(effort: Effort, values: Values) -> Table:
    limits = _limits(values)
    rows = [
        (POLICIES[policy][0], n, load, k, share.mean, low(share), high(share),
         limits[load, k]["paper"], limits[load, k]["sharp"], values[f"{policy}-{n}-{load:.6f}"]["jobs"])
        for policy in POLICIES
        for n, load in _points(effort)
        for k, share in zip(WIDTHS, _shares(policy, n, load, values), strict=True)
    ]  # fmt: skip
    names = (
        "policy",
        "cores",
        "load",
        "k0",
        "share of work",
        "low",
        "high",
        "paper's bound",
        "sharper bound",
    )
    columns = dict(zip((*names, "jobs simulated"), zip(*rows, strict=True), strict=True))
    return Table("heavy-load", "Work done on more than k0 cores (95 %)", columns, shown=False)
