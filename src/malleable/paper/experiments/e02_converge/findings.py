"""What the cells of e02_converge show: figures, tables and verdicts."""

from __future__ import annotations

from math import inf, isfinite, log, nan
from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e02_converge.cells import BETAS, CORES, cores_of
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.curves import Curve, costs_table, positive
from malleable.paper.experiments.shared.fw_cam_pools import CANDIDATES
from malleable.paper.experiments.shared.known_jobs import above, known_bounds, known_series
from malleable.paper.experiments.shared.policies import POLICIES, Label
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_number

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate

RATE_FROM = 256
"""From this many cores on, rates of convergence are fitted."""
SETTLED = 512
"""From this many cores on, a + b/n + c/n² is fitted: the next term is below 0.01 % there."""
PRECISE = 0.02
"""Relative half-width that a limit must be known to before it counts as confirmed."""
CHOICES = {
    "beta": "0.76, 0.8, 0.9, and for each n the best of 0.751, 0.76, 0.77, …, 0.99 by exact cost",
    "n": "powers of 2 from 8 to 16384; the load stays 0.25, so arrival rates grow with n",
    "run length": (
        "WHAM until the 95 % interval is ±0.2 % (±0.05 % at full effort, ±0.01 % with a GPU); FW-CAM as many "
        "jobs as WHAM begins with, because its exact cost is known (at full effort as WHAM)"
    ),
    "warm-up": "found by MSER-5 and left out",
    "slots": "rounded down after adding 1e-9, so that a slot that fits up to rounding counts",
    "ties": "FW-CAM serves each class first come, first served",
    "rates": f"slope of log gap over log n, n ≥ {RATE_FROM}; limits from a + b/n + c/n², n ≥ {SETTLED}",
}
REMARKS = (
    (
        "Every n at which some β has no plan is marked, on a line for the β and the reason: infeasible means "
        "that n − n^β cores cannot carry the load, which is so up to some n and never after; unstable that "
        "rounding down leaves a class too few slots, which comes and goes with n."
    ),
    (
        f"The best β is that of least exact cost among {CANDIDATES[0]} and 0.76, 0.77, …, 0.99. It falls "
        "with n to the least β allowed: on many cores queues are short, and slack only costs."
    ),
    (
        "Exact costs need M/PH/c, whose work grows with the fourth power of the slots; where a class has too "
        "many, only simulated costs are given."
    ),
    (
        "Slopes for FW-CAM are over the n shown. In the limit its gap is proportional to n^(β−1), the share "
        "of the cores that it leaves unplanned."
    ),
)


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the rates, and what they say."""
    cores, lowest = cores_of(effort), values["theory"]["bound"]
    wham, best = wham_curve(cores, values), best_curve(cores, values)
    fixed = [fixed_curve(beta, cores, values) for beta in BETAS]
    curves = [wham, *fixed, best]
    rates = {curve.name: curve.rate(lowest, RATE_FROM) for curve in curves}
    exact = "Simulated FW-CAM costs what Erlang C and M/PH/c say"
    return Findings(
        title="FW-CAM and WHAM converge to the lower bound",
        source="Figure 2a: FW-CAM vs. WHAM",
        statement=(
            "No policy can have a mean holding cost below V*, the cost of a relaxed problem in which only "
            "the average number of cores in use is limited. The paper proves that the cost of FW-CAM and of "
            "WHAM tends to V* as cores and arrival rates grow together, and shows by simulation that WHAM "
            "gets there much faster. FW-CAM plans for n − n^β of the n cores; the paper asks for "
            "0.75 < β < 1 and does not say which β it used."
        ),
        figures=(figure(values, wham, fixed, best),),
        tables=(
            costs_table("converge", "Costs over n", curves, lowest),
            rates_table(rates),
            exact_table(values, lowest),
        ),
        verdicts=(
            wham_converges(wham, lowest),
            *(fixed_converges(beta, values, lowest) for beta in BETAS),
            converges_faster(wham, [*fixed, best], lowest, rates),
            ev.agreement(exact, [case for c in fixed for case in c.cases()], effort.precision / 2.0),
            stays_above(curves, lowest),
        ),
        remarks=REMARKS,
    )


def wham_curve(cores: tuple[int, ...], values: Values) -> Curve:
    """Simulated costs of WHAM."""
    found = {n: values[f"wham-{n}"] for n in cores}
    nothing, stable = (nan,) * len(cores), ("stable",) * len(cores)
    return Curve.simulated_by("wham", POLICIES["wham"], found, beta=nothing, status=stable)


def fixed_curve(beta: float, cores: tuple[int, ...], values: Values) -> Curve:
    """Exact and simulated costs of FW-CAM with one β."""
    exact = {row["cores"]: row for row in values[f"exact-{beta}"]}
    rows = [exact[n] for n in cores]
    return Curve.simulated_by(
        f"fw-cam:beta={beta}",
        Label(f"FW-CAM, β = {beta}", BETAS[beta]),
        {n: values.get(f"fw-cam-{beta}-{n}") for n in cores},
        [read_number(row.get("cost")) for row in rows],
        [row.get("reason", "") for row in rows],
        beta=[beta] * len(cores),
        status=[row["status"] for row in rows],
    )


def best_curve(cores: tuple[int, ...], values: Values) -> Curve:
    """Exact costs of FW-CAM with the best β for each number of cores."""
    rows = [values.get(f"best-{n}", {"status": "not computed"}) for n in cores]
    betas = [read_number(row.get("beta")) for row in rows]
    return Curve.simulated_by(
        "fw-cam",
        Label("FW-CAM, best β", 4),
        dict.fromkeys(cores),
        [read_number(row.get("cost")) for row in rows],
        [row.get("reason", f"β = {beta:g}") for row, beta in zip(rows, betas, strict=True)],
        beta=betas,
        status=[row["status"] for row in rows],
    )


def figure(values: Values, wham: Curve, fixed: list[Curve], best: Curve) -> Figure:
    """Costs above the lower bound, and how fast they approach it."""
    known, n = values["theory"], wham.x
    lowest = known["bound"]
    least = known_bounds(wham.cores, values)
    apart = [above(cost, one) for cost, one in zip(wham.simulated, least, strict=True)]
    refined = tuple(known["wham_coefficient"] / x / lowest for x in n)
    costs = [
        Series("V*, the lower bound", n, (lowest,) * len(n), style="dashed", colour=6),
        Series("V*, no job on more than n cores", n, tuple(known["capped"]), style="dotted", colour=6),
        known_series(n, least),
        wham.series("both"),
        *(_exact(beta, values) for beta in BETAS),
        *(curve.series("points", f"{curve.name}, simulated") for curve in fixed),
        Series(best.name, n, best.exact, style="dashed", colour=4, notes=best.notes),
    ]
    gaps = [
        wham.gap_series(lowest, "both"),
        Series.of("WHAM above the least cost if all jobs were known", n, positive(apart), "both", 10),
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
        "straight line is a power of n, and WHAM's is the steepest. The line below it is WHAM's distance "
        "from the least that a policy could cost that knew all jobs: the rest no policy can avoid.",
        (
            Panel(Axis("cores n", "log"), Axis("cost", "log"), tuple(costs), marks=_marks(values, fixed)),
            Panel(Axis("cores n", "log"), Axis("cost / V* − 1", "log"), tuple(gaps)),
        ),
    )


def _exact(beta: float, values: Values) -> Series:
    rows = [row for row in values[f"exact-{beta}"] if row["cores"] <= CORES[-1]]
    x = tuple(float(row["cores"]) for row in rows)
    y = tuple(read_number(row.get("cost")) for row in rows)
    notes = tuple(row.get("reason", "") for row in rows)
    return Series(f"FW-CAM, β = {beta}, exact", x, y, style="line", colour=BETAS[beta], notes=notes)


def _marks(values: Values, curves: list[Curve]) -> tuple[tuple[float, float, str], ...]:
    """Where a β has no plan, above the curves: a line for each reason and β, named at its last mark."""
    top = max(e.mean for curve in curves for e in curve.simulated if isfinite(e.half_width))
    marks: list[tuple[float, float, str]] = []
    line = 0
    for reason in ("unstable", "infeasible"):
        for beta in BETAS:
            rows = [row for row in values[f"exact-{beta}"] if row["status"] == reason]
            found = sorted(float(row["cores"]) for row in rows if row["cores"] <= CORES[-1])
            height = 1.6 * top * 1.8**line
            line += bool(found)
            marks += [(n, height, f"{reason}: β = {beta}" if n == found[-1] else "") for n in found]
    return tuple(marks)


def rates_table(rates: dict[str, Estimate]) -> Table:
    """Exponents of the gaps."""
    columns = {"policy": tuple(rates), **interval_columns("exponent", rates.values())}
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


def wham_converges(wham: Curve, lowest: float) -> Verdict:
    """Whether WHAM's costs tend to the bound."""
    found, points = ev.limit(wham.cores, wham.simulated, SETTLED)
    last = wham.gaps(lowest)[-1]
    note = f"{points} points; gap {last.mean:.3%} ± {last.half_width:.2%} on {wham.cores[-1]} cores"
    return ev.tends_to("WHAM's cost converges to V*", found, lowest, PRECISE, note)


def fixed_converges(beta: float, values: Values, lowest: float) -> Verdict:
    """Both parts of the gap must vanish: narrower slots, followed to 2^50 cores, and waiting.

    The first is a power of n in the end, with exponent β − 1; a gap that levels off has exponent 0.
    """
    rows = [row for row in values[f"exact-{beta}"] if row["status"] == "stable"]
    narrow = [(row["cores"], row["service_cost"] / lowest - 1.0) for row in rows]
    (before, wider), (last, least) = narrow[-2:]
    exponent = log(least / wider) / log(last / before) if min(least, wider) > 0.0 else 0.0
    waits = [(row["cores"], row["waiting_cost"] / lowest) for row in rows if row.get("waiting_cost")]
    slope, _ = ev.power([n for n, _ in waits], [w for _, w in waits])
    text = (
        f"gap from narrower slots {narrow[0][1]:.1%} on {narrow[0][0]} cores, {least:.2%} on {last:.2g}, "
        f"where it falls as n to the power {exponent:.3f}; from waiting {waits[0][1]:.2%} on {waits[0][0]}, "
        f"{waits[-1][1]:.2g} on {waits[-1][0]}, power {slope.mean:.1f} ± {slope.half_width:.1f}"
    )
    powers = abs(exponent / (beta - 1.0) - 1.0) < 0.1
    holds = None if slope.half_width == inf else powers and slope.high < 0.0
    return Verdict(f"FW-CAM's cost converges to V* with β = {beta}", holds, text)


def converges_faster(wham: Curve, others: list[Curve], lowest: float, rates: dict[str, Estimate]) -> Verdict:
    """Whether WHAM's gap has the steeper slope and is the smaller one wherever both are known."""
    pairs = [
        (mine, theirs)
        for curve in others
        for mine, theirs in zip(wham.gaps(lowest), curve.gaps(lowest), strict=True)
        if isfinite(theirs.half_width)
    ]
    ours, slopes = rates[wham.name], [rates[curve.name] for curve in others]
    nearer = sum(mine.high < theirs.low for mine, theirs in pairs)
    told = ", ".join(f"{name} {slope.mean:.2f} ± {slope.half_width:.2f}" for name, slope in rates.items())
    text = f"gap falls as n to the power {told}; WHAM nearer to V* at {nearer} of {len(pairs)} points"
    refuted = any(mine.low > theirs.high for mine, theirs in pairs) or any(ours.low > s.high for s in slopes)
    shown = nearer == len(pairs) and all(ours.high < slope.low for slope in slopes)
    return Verdict("WHAM converges faster than FW-CAM", False if refuted else shown or None, text)


def stays_above(curves: list[Curve], lowest: float) -> Verdict:
    """No simulated cost may lie below the bound by more than its interval."""
    gaps = [gap for curve in curves for gap in curve.gaps(lowest) if isfinite(gap.half_width)]
    least, lowest_mean = min(gaps, key=lambda gap: gap.high), min(gaps, key=lambda gap: gap.mean)
    text = (
        f"{len(gaps)} points, lowest gap {lowest_mean.mean:.3%} ({lowest_mean.low:.3%} to "
        f"{lowest_mean.high:.3%}); lowest upper end of an interval {least.high:.3%}"
    )
    return Verdict("No policy costs less than V*", bool(least.high >= 0.0), text)
