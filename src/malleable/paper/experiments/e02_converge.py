"""FW-CAM and WHAM against the lower bound as the number of cores grows: Figure "FW-CAM vs. WHAM"."""

from __future__ import annotations

from math import inf, isfinite, log, nan
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Verdict, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._converge_figures import (
    BETAS,
    CORES,
    RATE_FROM,
    exact_table,
    figure,
    number,
    rates_table,
)
from malleable.paper.experiments._curves import Curve, costs_table
from malleable.paper.experiments._pools import CANDIDATES, all_planned, best_planned
from malleable.paper.simulation_cells import compared, effort_arguments
from malleable.statistics.intervals import Estimate
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LOAD = 0.25
SEED = 2
QUICK_CORES, QUICK_FIXED = (16, 64, 256, 512, 1024, 2048), (16, 64, 512)
"""Numbers of cores in a quick look, and those at which FW-CAM is simulated."""
BETWEEN = (10, 11, 13, 19, 23, 27, 38, 43, 45, 54, 76, 91, 108, 152, 181, 215, 304, 362, 431, 609, 724, 861)
"""More numbers of cores for exact costs, to show how rounding to whole slots moves them."""
FAR = (2**20, 2**30, 2**40, 2**50)
"""Numbers of cores at which only the widths are worked out."""
MOST_SLOTS = {"quick": 100, "normal": 100, "full": 200}
"""Slots of a class up to which M/PH/c is solved, by effort."""
SETTLED = 512
"""From this many cores on, a + b/n + c/n² is fitted: the next term is below 0.01 % there."""
PRECISE = 0.02
"""Relative half-width that a limit must be known to before it counts as confirmed."""

CHOICES = {
    "beta": "0.76, 0.8, 0.9, and for each n the best of 0.751, 0.76, 0.77, …, 0.99 by exact cost",
    "n": "powers of 2 from 8 to 16384; the load stays 0.25, so arrival rates grow with n",
    "run length": (
        "WHAM until the 95 % interval is ±0.2 % (±0.05 % at full effort); FW-CAM as many jobs as WHAM begins "
        "with, because its exact cost is known (at full effort until ±0.05 %, too)"
    ),
    "warm-up": "found by MSER-5 and left out",
    "slots": "rounded down after adding 1e-9, so that a slot that fits up to rounding counts",
    "ties": "FW-CAM serves each class first come, first served",
    "rates": f"slope of log gap over log n, n ≥ {RATE_FROM}; limits from a + b/n + c/n², n ≥ {SETTLED}",
}


def cells(effort: Effort) -> list[Cell]:
    """Simulations by policy and n; exact costs of FW-CAM by β; the bound and WHAM's mean field."""
    cores = _cores(effort)
    asked = sorted({*cores, *FAR, *(() if effort.quick else BETWEEN)})
    exact = {"load": LOAD, "most_slots": MOST_SLOTS[effort.name]}
    made = [Cell("theory", theory, {"cores": list(cores)}, 0.3)]
    made += [Cell(f"exact-{b}", all_planned, {"cores": asked, "beta": b, **exact}, 1.0) for b in BETAS]
    for n in cores:
        weight = 1.2 * effort.jobs * (1.0 + n / 8000) / 4e6
        run = {"cores": n, "load": LOAD, "seed": SEED, **effort_arguments(effort)}
        made.append(Cell(f"wham-{n}", compared, {"policies": ["wham"], **run}, weight))
        fixed = run if effort.name == "full" else {**run, "precision": None}
        if n in QUICK_FIXED or not effort.quick:
            made += [
                Cell(f"fw-cam-{b}-{n}", compared, {"policies": [f"fw-cam:beta={b}"], **fixed}, weight)
                for b in BETAS
            ]
        if n >= 64 or not effort.quick:
            made.append(Cell(f"best-{n}", best_planned, {"cores": n, **exact}, 0.5))
    return made


def _cores(effort: Effort) -> tuple[int, ...]:
    return QUICK_CORES if effort.quick else CORES


def theory(cores: list[int]) -> dict[str, Any]:
    """The bound, its tighter form on few cores, and the mean field's prediction for WHAM."""
    bounds = [bound(paper_workload(n, LOAD), n) for n in cores]
    point = mean_field(bounds[-1].workload, bounds[-1].cores, Policy.of("wham"), starts=0)
    return {
        "bound": bounds[-1].bound,
        "capped": [b.bound_capped for b in bounds],
        "wham_coefficient": point.refined.coefficient,
    }


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the rates, and what they say."""
    cores, lowest = _cores(effort), values["theory"]["bound"]
    wham, best = _wham(cores, values), _best(cores, values)
    fixed = [_fixed(beta, cores, values) for beta in BETAS]
    curves = [wham, *fixed, best]
    rates = {curve.name: curve.rate(lowest, RATE_FROM) for curve in curves}
    exact = "Simulated FW-CAM costs what Erlang C and M/PH/c say"
    return Findings(
        title="FW-CAM and WHAM converge to the lower bound",
        source="Figure: FW-CAM vs. WHAM",
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
            _wham_converges(wham, lowest),
            *(_fixed_converges(beta, values, lowest) for beta in BETAS),
            _faster(wham, [*fixed, best], lowest, rates),
            ev.agreement(exact, [case for c in fixed for case in c.cases()], effort.precision / 2.0),
            _above(curves, lowest),
        ),
        remarks=REMARKS,
    )


REMARKS = (
    (
        "A missing point is marked: infeasible means that n − n^β cores cannot carry the load, unstable that "
        "rounding down leaves a class too few slots. Neither is monotone in n."
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


def _wham(cores: tuple[int, ...], values: Values) -> Curve:
    results = tuple(values[f"wham-{n}"]["results"]["wham"] for n in cores)
    costs = tuple(ev.estimate(result["cost"]) for result in results)
    nothing = (nan,) * len(cores)
    return Curve("WHAM", cores, costs, results, nothing, 0, more=_more(nothing, ("stable",) * len(cores)))


def _fixed(beta: float, cores: tuple[int, ...], values: Values) -> Curve:
    rows = {row["cores"]: row for row in values[f"exact-{beta}"]}
    found: list[Any] = [values.get(f"fw-cam-{beta}-{n}") for n in cores]
    results = tuple(None if failed(v) else v["results"][f"fw-cam:beta={beta}"] for v in found)
    return Curve(
        f"FW-CAM, β = {beta}",
        cores,
        tuple(Estimate() if r is None else ev.estimate(r["cost"]) for r in results),
        results,
        tuple(number(rows[n].get("cost")) for n in cores),
        BETAS[beta],
        tuple(rows[n].get("reason", "") for n in cores),
        _more((beta,) * len(cores), tuple(rows[n]["status"] for n in cores)),
    )


def _best(cores: tuple[int, ...], values: Values) -> Curve:
    rows = [values.get(f"best-{n}", {"status": "not computed"}) for n in cores]
    betas = tuple(number(row.get("beta")) for row in rows)
    return Curve(
        "FW-CAM, best β",
        cores,
        (Estimate(),) * len(cores),
        (None,) * len(cores),
        tuple(number(row.get("cost")) for row in rows),
        4,
        tuple(row.get("reason", f"β = {beta:g}") for row, beta in zip(rows, betas, strict=True)),
        _more(betas, tuple(row["status"] for row in rows)),
    )


def _more(beta: tuple[float, ...], status: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    return {"beta": beta, "status": status}


def _wham_converges(wham: Curve, lowest: float) -> Verdict:
    found, points = ev.limit(wham.cores, wham.simulated, SETTLED)
    last = wham.gaps(lowest)[-1]
    note = f"{points} points; gap {last.mean:.3%} ± {last.half_width:.2%} on {wham.cores[-1]} cores"
    return ev.tends_to("WHAM's cost converges to V*", found, lowest, PRECISE, note)


def _fixed_converges(beta: float, values: Values, lowest: float) -> Verdict:
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


def _faster(wham: Curve, others: list[Curve], lowest: float, rates: dict[str, Estimate]) -> Verdict:
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


def _above(curves: list[Curve], lowest: float) -> Verdict:
    """No simulated cost may lie below the bound by more than its interval."""
    gaps = [gap for curve in curves for gap in curve.gaps(lowest) if isfinite(gap.half_width)]
    least = min(gaps, key=lambda gap: gap.high)
    text = f"{len(gaps)} points, lowest gap {least.mean:.3%} ({least.low:.3%} to {least.high:.3%})"
    return Verdict("No policy costs less than V*", bool(least.high >= 0.0), text)
