"""What the cells of e05_heavy_load show: figures, tables and verdicts."""

from __future__ import annotations

from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e05_heavy_load.cells import (
    CORES,
    WIDTHS,
    over_cores,
    over_load,
    points_of,
)
from malleable.paper.experiments.shared.columns import ends, from_rows
from malleable.paper.experiments.shared.curves import positive
from malleable.paper.experiments.shared.policies import POLICIES
from malleable.paper.simulation_cells import PAPERS
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate

SHOWN = 1
"""Position of the k0 for which all policies are drawn."""
CHOICES = {
    "regimes": "ρ → 1 on 64 cores, and n → ∞ with ρ = 1 − 1/√n (Halfin–Whitt)",
    "k0": "1.25, 2 and 4 cores",
    "policies": "WHAM, EQUI, GREEDY; the proposition is about any policy under which the system is stable",
    "run length": "half as many jobs as the effort has; the first fifth is left out",
    "intervals": "20 batches, 95 %, lengthened for correlation",
}


def findings(effort: Effort, values: Values) -> Findings:
    """The shares beside their bounds, and what they say."""
    return Findings(
        title="Near full load almost nothing runs in parallel",
        source="Proposition: almost no parallelism happens as ρ → 1",
        statement=(
            "A job on many cores does less work per core. When the work that arrives needs nearly all cores "
            "even at one core per job, there is none to waste, so only a vanishing share of the work can be "
            "done on more than k0 cores, for any k0 > 1 and any policy that keeps the system stable. This "
            "is why the paper keeps the load fixed and lets the number of cores grow."
        ),
        figures=(figure(effort, values),),
        tables=(table(effort, values),),
        verdicts=(
            below_bound(
                "paper", "The share beyond k0 is below the bound in the paper's proof", effort, values
            ),
            below_bound("sharp", "It is below the sharper bound, too", effort, values),
            *(
                vanishing(f"{where}: {POLICIES[policy].name} does a vanishing share of its work on more than "
                          f"{WIDTHS[SHOWN]:g} cores", policy, points, values)
                for where, points in (
                    (f"On {CORES} cores", over_load(effort)),
                    ("With ρ = 1 − 1/√n", over_cores(effort)),
                )
                for policy in PAPERS
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


def shares_of(policy: str, n: int, load: float, values: Values) -> list[Estimate]:
    """Measured shares of jobs that are wider than each of the widths."""
    return [read_interval(one) for one in values[f"{policy}-{n}-{load:.6f}"]["shares"]]


def limits_of(values: Values) -> dict[tuple[float, float], Any]:
    """The bounds by load and width."""
    return {(row["load"], row["k0"]): row for row in values["bounds"]}


def figure(effort: Effort, values: Values) -> Figure:
    """Shares of jobs on more than k₀ cores, and the bounds on them."""
    limits, over = limits_of(values), over_load(effort)
    x = [1.0 - load for _, load in over]
    wham = []
    for i, k in enumerate(WIDTHS):
        shares = positive(shares_of("wham", *p, values)[i] for p in over)
        wham.append(Series.of(f"WHAM, k0 = {k:g}", x, shares, "both", i))
        wham.append(_bound(f"bound, k0 = {k:g}", x, [limits[load, k]["paper"] for _, load in over], i))
    y = Axis(f"share of work beyond k0, n = {CORES}", "log")
    panels = [Panel(Axis("1 − ρ", "log"), y, tuple(wham))]
    for title, points in (("1 − ρ", over), ("1 − ρ = 1/√n", over_cores(effort))):
        x = [1.0 - load for _, load in points]
        shown = []
        for policy in PAPERS:
            shares = positive(shares_of(policy, *p, values)[SHOWN] for p in points)
            shown.append(Series.of(POLICIES[policy].name, x, shares, "both", POLICIES[policy].colour))
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


def _bound(name: str, x: list[float], y: list[float], colour: int) -> Series:
    return Series(name, tuple(x), tuple(v if v < 1.0 else nan for v in y), style="dashed", colour=colour)


def table(effort: Effort, values: Values) -> Table:
    """All shares beside their bounds."""
    limits = limits_of(values)
    rows = [
        (POLICIES[policy].name, n, load, k, *ends(share),
         limits[load, k]["paper"], limits[load, k]["sharp"], values[f"{policy}-{n}-{load:.6f}"]["jobs"])
        for policy in PAPERS
        for n, load in points_of(effort)
        for k, share in zip(WIDTHS, shares_of(policy, n, load, values), strict=True)
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
    columns = from_rows((*names, "jobs simulated"), rows)
    return Table("heavy-load", "Work done on more than k0 cores (95 %)", columns, shown=False)


def below_bound(kind: str, statement: str, effort: Effort, values: Values) -> Verdict:
    """No share may exceed the bound by more than its interval."""
    limits = limits_of(values)
    rows = [
        (share, limits[load, k][kind], f"{POLICIES[policy].name}, n = {n}, ρ = {load:.4g}, k0 = {k:g}")
        for policy in PAPERS
        for n, load in points_of(effort)
        for k, share in zip(WIDTHS, shares_of(policy, n, load, values), strict=True)
    ]
    told = [row for row in rows if row[1] < 1.0 - 1e-9] or rows
    tight, most, name = max(told, key=lambda row: row[0].mean / row[1])
    above = sum(share.low > limit for share, limit, _ in rows)
    text = f"{len(rows)} shares, {above} above; nearest {tight.mean:.4f} of at most {most:.4f} ({name})"
    return Verdict(statement, above == 0, text)


def vanishing(statement: str, policy: str, points: list[tuple[int, float]], values: Values) -> Verdict:
    """The share must fall from the first point to the last and rise clearly at no step.

    That it ends at zero is the bound's part: a share below a bound that vanishes vanishes.
    """
    found = [shares_of(policy, n, load, values)[SHOWN] for n, load in points]
    bound = [limits_of(values)[load, WIDTHS[SHOWN]]["paper"] for _, load in points]
    told = ", ".join(f"{s.mean:.2%} at ρ = {load:.4g}" for s, (_, load) in zip(found, points, strict=True))
    rises = any(later.low > earlier.high for earlier, later in pairwise(found))
    above = any(share.low > most for share, most in zip(found, bound, strict=True))
    falls = found[-1].high < found[0].low
    text = f"{told}; bound {bound[0]:.1%} falling to {bound[-1]:.1%}"
    return Verdict(statement, False if rises or above else falls or None, text)
