"""Figures and tables of e02_converge."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from malleable.paper.contracts import Table
from malleable.paper.experiments.e02_converge.cells import BETAS, CORES
from malleable.paper.experiments.shared.curves import Curve
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_number
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.paper.experiments.shared.curves import Curve
    from malleable.statistics.intervals import Estimate
RATE_FROM = 256
"""From this many cores on, rates of convergence are fitted."""


def figure(values: Values, wham: Curve, fixed: list[Curve], best: Curve) -> Figure:
    """Costs above the lower bound, and how fast they approach it."""
    known, n = values["theory"], wham.x
    lowest = known["bound"]
    refined = tuple(known["wham_coefficient"] / x / lowest for x in n)
    costs = [
        Series("V*, the lower bound", n, (lowest,) * len(n), style="dashed", colour=6),
        Series("V*, no job on more than n cores", n, tuple(known["capped"]), style="dotted", colour=6),
        wham.series("both"),
        *(_exact(beta, values) for beta in BETAS),
        *(curve.series("points", f"{curve.name}, simulated") for curve in fixed),
        Series(best.name, n, best.exact, style="dashed", colour=4, notes=best.notes),
    ]
    gaps = [
        wham.gap_series(lowest, "both"),
        Series("WHAM, refined mean field", n, refined, style="dotted", colour=0),
        *(curve.gap_series(lowest, "both") for curve in fixed),
        best.gap_series(lowest, "dashed"),
    ]
    return Figure(
        "converge",
        "FW-CAM and WHAM against the lower bound",
        "First: mean holding cost per job over the number of cores n at load 0.25. Points are simulated, "
        "with 95 % intervals; lines of FW-CAM are exact, and jagged because slots are whole. Settings "
        "without a plan are marked. Second: the share by which the cost exceeds V*, on logarithmic axes: a "
        "straight line is a power of n, and WHAM's is the steepest.",
        (
            Panel(Axis("cores n", "log"), Axis("cost", "log"), tuple(costs), marks=_marks(fixed)),
            Panel(Axis("cores n", "log"), Axis("cost / V* − 1", "log"), tuple(gaps)),
        ),
    )


def _exact(beta: float, values: Values) -> Series:
    rows = [row for row in values[f"exact-{beta}"] if row["cores"] <= CORES[-1]]
    x = tuple(float(row["cores"]) for row in rows)
    y = tuple(read_number(row.get("cost")) for row in rows)
    notes = tuple(row.get("reason", "") for row in rows)
    return Series(f"FW-CAM, β = {beta}, exact", x, y, style="line", colour=BETAS[beta], notes=notes)


def _marks(curves: list[Curve]) -> tuple[tuple[float, float, str], ...]:
    """Where some β has no plan, above the curves: a line for each reason, whose last mark names the β."""
    top = max(e.mean for curve in curves for e in curve.simulated if isfinite(e.half_width))
    marks = []
    for line, reason in enumerate(("unstable", "infeasible")):
        found = [
            (float(n), curve.name.removeprefix("FW-CAM, β = "))
            for curve in curves
            for n, status in zip(curve.cores, curve.more["status"], strict=True)
            if status == reason
        ]
        text = f"{reason}: β = {', '.join(sorted({beta for _, beta in found}))}"
        last = max((n for n, _ in found), default=0.0)
        height = 1.6 * top * 2.5**line
        marks += [(n, height, text if n == last else "") for n in sorted({n for n, _ in found})]
    return tuple(marks)


def rates_table(rates: dict[str, Estimate]) -> Table:
    """Exponents of the gaps."""
    ends = {end: tuple(getattr(rate, end) for rate in rates.values()) for end in ("mean", "low", "high")}
    columns = {"policy": tuple(rates), "exponent": ends["mean"], "low": ends["low"], "high": ends["high"]}
    return Table("converge-rates", f"The gap as a power of n, n ≥ {RATE_FROM} (95 %)", columns)


def exact_table(values: Values, lowest: float) -> Table:
    """Exact costs of FW-CAM on many numbers of cores."""
    rows = [row for beta in BETAS for row in values[f"exact-{beta}"]]
    columns = {
        "beta": tuple(row["beta"] for row in rows),
        "cores": tuple(row["cores"] for row in rows),
        "status": tuple(row["status"] for row in rows),
        "gap from width": tuple(read_number(row.get("service_cost")) / lowest - 1.0 for row in rows),
        "gap from waiting": tuple(read_number(row.get("waiting_cost")) / lowest for row in rows),
        "cost": tuple(read_number(row.get("cost")) for row in rows),
    }
    return Table(
        "converge-exact", "FW-CAM exactly: what narrower slots and waiting add to V*", columns, shown=False
    )
