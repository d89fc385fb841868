"""What the cells of e07_whittle show: figures, tables and verdicts."""

from __future__ import annotations

from math import inf, log, log2, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e07_whittle.cells import (
    CLASSES,
    CORES,
    DISCOUNTS,
    HELD,
    LOADS,
    RENTS,
    SIMULATED_CORES,
    SIZES,
    SPEEDUPS,
)
from malleable.paper.experiments.e07_whittle.single_arm import CHANGED
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate

    Apart = tuple[Estimate, list[Estimate]]
    """WHAM's cost, and differences from it by discount."""
    Differences = dict[float, Apart]
    """The same by load."""

SHOWN_SIZE = 2
NEGLIGIBLE = 0.001
"""Share of WHAM's cost by which the simulated cost may differ at the smallest discount."""
CHOICES = {
    "alpha": f"actions and allocations: {', '.join(map(str, DISCOUNTS))}; simulated: down to 0.01",
    "sizes": f"widths at remaining sizes {', '.join(map(str, SIZES))}; indexability from 0.01 to 100",
    "prices": "widths at l/α from 0.03 to 30; indexability at l from 10⁻⁵ to 10³",
    "states": (
        f"{CORES} cores, half with fewer jobs than cores and half with up to 2.5 times as many, numbers of "
        "jobs uniform in their logarithm, classes equally likely, remaining sizes drawn from the size laws"
    ),
    "odd cores": (
        "at the market-clearing price cores may be left that no further job is worth; the discounted policy "
        "gives them to the next job or, if they do not make a core, to the jobs served"
    ),
}
REMARKS = (
    (
        "The limits of the widths are found by comparing (c + l·k)/s(k) at 4000 widths, not by the formulas "
        "that WHAM uses; every action of the indexability grid is compared with 400 widths and with waiting."
    ),
    (
        "The paper's definition of the policy lets a job hold one action for life, which is optimal only as "
        "α → 0. The optimal arm starts on one core just below its index and widens as less work is left; "
        "held for life, the action of a long job jumps from waiting to many cores."
    ),
    (
        "With either arm, long jobs wait too readily at a large discount, because time far away hardly "
        "counts. At high load the policy can be unstable: α = 1 at load 0.8 is."
    ),
    (
        "The paper requires of indexability also that free cores are used without limit; where a speedup has "
        "a peak, that is as far as they help."
    ),
)


def findings(effort: Effort, values: Values) -> Findings:  # noqa: ARG001 - the cells say it all
    """Figures, tables, and whether the limit is WHAM."""
    arms = [values[f"actions-{i}"] for i in range(len(CLASSES))]
    grids = {name: values[f"indexable-{i}"] for i, name in enumerate(SPEEDUPS)}
    states = values["allocations"]
    differences = {load: differences_of(load, values) for load in LOADS}
    return Findings(
        title="From the bandit to WHAM",
        source="Lemma: The optimal policy for the single-armed problem; Definition: Indexability; Theorem: "
        "the Whittle policy for α → 0",
        statement=(
            "Whittle's idea: let every job rent cores at a price l, as if it were alone, and set the price "
            "so that all cores are let. What a job should rent is found from its own holding cost and the "
            "rent, with future costs discounted at rate α. The paper assumes that a job never rents more "
            "when the price rises (indexability), lets α go to 0, and arrives at WHAM: at prices of the "
            "order of α a job takes the width that minimises (c + l·k)/s(k); at prices of the order of 1 it "
            "has one core while l < c/x, and waits otherwise."
        ),
        figures=(
            arms_figure(arms),
            map_figure(values["map"]),
            values_figure(values["values"]),
            policy_figure(states, differences),
        ),
        tables=(
            widths_table(arms),
            limits_table(arms),
            index_table(grids),
            states_table(states),
            differences_table(differences),
        ),
        verdicts=(
            widths_verdict(arms),
            thresholds_verdict(arms),
            indexable_verdict(grids),
            values_verdict(values["values"]),
            *allocations_verdicts(states),
            *(simulated_verdict(load, found) for load, found in differences.items()),
        ),
        remarks=(*REMARKS, *_held(values), *_better(differences)),
    )


def _held(values: Values) -> tuple[str, ...]:
    """What the policy costs with one action for life, beside the optimal arm."""
    told = []
    for load, discounts in HELD.items():
        found = Compared(values[f"simulated-{load}"])
        for alpha in discounts:
            arms = {
                "optimal": f"whittle:alpha={alpha}",
                "held for life": f"whittle:alpha={alpha},arm=constant",
            }
            shares = {name: found.share(policy) for name, policy in arms.items()}
            parts = (f"{name} {share.mean:+.2%} ± {share.half_width:.2%}" for name, share in shares.items())
            told.append(f"α = {alpha:g} at load {load}: " + ", ".join(parts))
    return (f"Cost over WHAM's on {SIMULATED_CORES} cores by arm, {'; '.join(told)}.",)


def _better(differences: Differences) -> tuple[str, ...]:
    """Which discounts cost less than none: WHAM is optimal in the limit of many cores only."""
    found = [
        f"{-d.mean / wham.mean:.2%} at α = {alpha:g} and load {load}"
        for load, (wham, apart) in differences.items()
        for alpha, d in zip(LOADS[load], apart, strict=True)
        if d.high < 0.0
    ]
    text = f"On {SIMULATED_CORES} cores some discount costs less than none, because it looks at sizes: "
    return (f"{text}{', '.join(found)}.",) if found else ()


def gap(arm: Any, discount: int) -> tuple[float, int]:
    """The largest relative difference of widths from the limit, and at how many points the job waits."""
    widths, limit = np.array(arm["widths"][discount]), np.array(arm["limit"])
    served = widths > 0.0
    off = np.abs(widths / limit - 1.0)
    return float(off[served].max(initial=0.0)), int((~served).sum())


def by_mode(states: list[Any], crowded: bool, key: str) -> list[float]:
    """The largest value over the states of a mode, by discount."""
    mine = np.array([state[key] for state in states if state["crowded"] == crowded], dtype=float)
    return [float(v) for v in mine.max(axis=0)]


def differences_of(load: float, values: Values) -> Apart:
    """WHAM's cost, and the paired differences from it by discount."""
    found = Compared(values[f"simulated-{load}"])
    return found.cost("wham"), [found.apart(f"whittle:alpha={alpha}") for alpha in LOADS[load]]


def arms_figure(arms: list[Any]) -> Figure:
    """What a job rents over the price, class by class."""
    panels = []
    for arm in arms:
        series = [
            Series(f"α = {alpha:g}", RENTS, tuple(arm["widths"][d][SHOWN_SIZE]), colour=d)
            for d, alpha in enumerate(DISCOUNTS[:3])
        ]
        series.append(
            Series("α → 0: argmin (c + l·k)/s(k)", RENTS, tuple(arm["limit"]), style="dashed", colour=6)
        )
        x, y = Axis("price l over α", "log"), Axis("cores k", low=0.0, high=12.0)
        panels.append(Panel(x, y, tuple(series), title=arm["name"]))
    return Figure(
        "whittle-arms",
        "What a single job should rent",
        f"Optimal number of cores of a job of remaining size {SIZES[SHOWN_SIZE]} over the price, for the "
        "paper's three classes. With little discount the curve follows the limit, and the price above which "
        "the job waits (k = 0) moves away to the right, as 1/α.",
        tuple(panels),
    )


def map_figure(found: Any) -> Figure:
    """What it rents over price and size."""
    z = tuple(tuple(log2(1.0 + k) for k in row) for row in found["cores"])
    grid = Grid(tuple(found["prices"]), tuple(found["sizes"]), z, "log₂(1 + cores)")
    border = Series(
        "c/x, the border as α → 0", tuple(2.0 / x for x in found["sizes"]), tuple(found["sizes"]), colour=1
    )
    panel = Panel(
        Axis("price l", "log", low=found["prices"][0], high=found["prices"][-1]),
        Axis("remaining size x", "log", low=found["sizes"][0], high=found["sizes"][-1]),
        (border,),
        grid,
        f"{found['name']}, α = 1",
    )
    return Figure(
        "whittle-map",
        "Who waits, and who is served on how many cores",
        "Optimal actions over price and remaining size at a large discount, α = 1. The darkest region, where "
        "jobs wait, grows from left to right: indexability. Every job steps from waiting to one core, short "
        "ones at the price c/x and long ones below it, and widens as less of it is left.",
        (panel,),
    )


def values_figure(found: Any) -> Figure:
    """V(x) by price, and what one action for life costs."""
    x = tuple(found["sizes"])
    series = []
    for i, price in enumerate(found["prices"]):
        series.append(Series(f"V(x), price {price:g}", x, tuple(found["optimal"][i]), colour=i))
        held = tuple(found["held"][i])
        series.append(Series(f"one action for life, price {price:g}", x, held, style="dashed", colour=i + 8))
    panel = Panel(Axis("remaining size x"), Axis("discounted cost", low=0.0), tuple(series))
    return Figure(
        "whittle-values",
        "What a single job costs",
        f"Least discounted cost V(x) of a job of {found['name']} at α = 1 over its remaining size, for three "
        "prices of a core, in units in which waiting forever costs c = 2; dashed, the best action held for "
        "life. A job waits from the size on at which its curve reaches 2.",
        (panel,),
    )


def policy_figure(states: list[Any], differences: Differences) -> Figure:
    """How far the discounted policy is from WHAM."""
    few = by_mode(states, crowded=False, key="largest")
    moved = [v if v > 1e-9 else nan for v in by_mode(states, crowded=True, key="moved")]
    left = (
        Series("fewer jobs than cores: cores of a job", DISCOUNTS, tuple(few), style="both", colour=0),
        Series("more jobs than cores: share of cores moved", DISCOUNTS, tuple(moved), style="both", colour=1),
    )
    right = tuple(
        Series.of(
            f"load {load}",
            LOADS[load],
            [d.over(wham.mean) for d in apart],
            "both",
            2 + i,
        )
        for i, (load, (wham, apart)) in enumerate(differences.items())
    )
    return Figure(
        "whittle-policy",
        "The discounted Whittle policy tends to WHAM",
        "First: largest difference between the two policies' allocations over random states; zero where a "
        "curve ends. Second: cost of the discounted policy over WHAM's, less 1, from paired simulations on "
        f"{SIMULATED_CORES} cores with 95 % intervals.",
        (
            Panel(Axis("discount α", "log"), Axis("largest difference", "log"), left, title="allocations"),
            Panel(Axis("discount α", "log"), Axis("cost / cost of WHAM − 1"), right, title="costs"),
        ),
    )


def widths_table(arms: list[Any]) -> Table:
    """All widths."""
    columns: dict[str, tuple[Any, ...]] = {"l/α": RENTS}
    for arm in arms:
        for d, alpha in enumerate(DISCOUNTS):
            for position, x in enumerate(SIZES):
                columns[f"{arm['name']}, α = {alpha:g}, x = {x:g}"] = tuple(arm["widths"][d][position])
        columns[f"{arm['name']}, limit"] = tuple(arm["limit"])
    return Table("whittle-widths", "Optimal widths over the price", columns, shown=False)


def limits_table(arms: list[Any]) -> Table:
    """Distances from the limit by class and discount."""
    rows = [(arm, d) for arm in arms for d in range(len(DISCOUNTS))]
    columns = {
        "class": tuple(arm["name"] for arm, _ in rows),
        "α": tuple(DISCOUNTS[d] for _, d in rows),
        "largest relative difference of widths": tuple(gap(arm, d)[0] for arm, d in rows),
        "points where the job waits": tuple(gap(arm, d)[1] for arm, d in rows),
        "largest relative distance of the index from c/x": tuple(
            float(np.abs(np.array(arm["indices"][d]) - 1.0).max()) for arm, d in rows
        ),
    }
    return Table("whittle-limits", "How far a single job is from the limit", columns)


def index_table(grids: dict[str, Any]) -> Table:
    """What the grids found, by speedup."""
    keys = {
        "steps of the price": "steps",
        "actions that fall": "falling",
        "waits that last": "passive",
        "largest relative rise": "worst_rise",
        "least width of free cores over the peak": "free_share",
        "loss against a grid of widths": "worst_loss",
    }
    columns: dict[str, tuple[Any, ...]] = {"speedup": tuple(grids)}
    columns |= {title: tuple(g[key] for g in grids.values()) for title, key in keys.items()}
    return Table("whittle-indexability", "Indexability on a grid of sizes, prices and discounts", columns)


def states_table(states: list[Any]) -> Table:
    """Differences of allocations by discount."""
    columns: dict[str, tuple[Any, ...]] = {"α": DISCOUNTS}
    for name, crowded in (("N < n", False), ("N ≥ n", True)):
        for title, key in (("largest difference", "largest"), ("share of cores moved", "moved")):
            columns[f"{name}, {title}"] = tuple(by_mode(states, crowded, key))
        columns[f"{name}, states that differ"] = tuple(
            sum(s["changed"][d] > 0 for s in states if s["crowded"] == crowded) for d in range(len(DISCOUNTS))
        )
    return Table("whittle-allocations", f"Allocations on {len(states)} random states", columns)


def differences_table(differences: Differences) -> Table:
    """Differences of costs by load and discount."""
    rows = [
        (load, alpha, wham, d)
        for load, (wham, apart) in differences.items()
        for alpha, d in zip(LOADS[load], apart, strict=True)
    ]
    columns: dict[str, tuple[Any, ...]] = {
        "load": tuple(load for load, *_ in rows),
        "α": tuple(alpha for _, alpha, *_ in rows),
        **interval_columns("cost of WHAM", (wham for *_, wham, _ in rows), "WHAM low", "WHAM high"),
        **interval_columns("difference", (d for *_, d in rows), "difference low", "difference high"),
    }
    return Table("whittle-costs", f"Costs on {SIMULATED_CORES} cores, paired with WHAM (95 %)", columns)


def _order(discounts: Sequence[float], gaps: Sequence[float]) -> float:
    """The power of α with which the last gaps fall; 0 if they do not fall."""
    if min(gaps[-2:]) <= 0.0:
        return inf if gaps[-1] <= 0.0 else 0.0
    return log(gaps[-2] / gaps[-1]) / log(discounts[-2] / discounts[-1])


def widths_verdict(arms: list[Any]) -> Verdict:
    """Whether no job waits in the end, and widths differ by less and less: in proportion to α."""
    found = [[gap(arm, d) for arm in arms] for d in range(len(DISCOUNTS))]
    gaps, waiting = [max(g for g, _ in row) for row in found], [sum(w for _, w in row) for row in found]
    order = _order(DISCOUNTS, gaps)
    told = "; ".join(
        f"α = {alpha:g}: {gap:.2g}" + (f", waits at {count} points" if count else "")
        for alpha, gap, count in zip(DISCOUNTS, gaps, waiting, strict=True)
    )
    return Verdict(
        "As α → 0 the best width at price l·α tends to argmin (c + l·k)/s(k)",
        bool(waiting[-1] == 0 and order > 0.9 and gaps[-1] < 0.01),
        f"largest relative difference: {told}; falls as α to the power {order:.3f}",
    )


def thresholds_verdict(arms: list[Any]) -> Verdict:
    """Whether indices of arms tend to WHAM's thresholds."""
    gaps = [
        max(float(np.abs(np.array(arm["indices"][d]) - 1.0).max()) for arm in arms)
        for d in range(len(DISCOUNTS))
    ]
    order = _order(DISCOUNTS, gaps)
    told = "; ".join(f"α = {alpha:g}: {gap:.2g}" for alpha, gap in zip(DISCOUNTS, gaps, strict=True))
    return Verdict(
        "As α → 0 a job is served exactly at prices below c/x",
        bool(order > 0.9 and gaps[-1] < 0.01),
        f"largest relative distance of the index from c/x: {told}; falls as α to the power {order:.3f}",
    )


def indexable_verdict(grids: dict[str, Any]) -> Verdict:
    """Every step must fall, every wait must last, and every action must be the cheapest."""
    steps = sum(g["steps"] for g in grids.values())
    falling, passive = (sum(g[key] for g in grids.values()) for key in ("falling", "passive"))
    loss, free = max(g["worst_loss"] for g in grids.values()), min(g["free_share"] for g in grids.values())
    checked = max(g["worst_rise"] for g in grids.values()) <= 1e-9
    return Verdict(
        "Jobs are indexable: more wait and none takes more cores when the price rises",
        bool(
            falling == passive == steps
            and sum(g["rises"] for g in grids.values()) == 0
            and checked
            and loss < 1e-9
            and free > 1.0 - 1e-9
        ),
        f"{steps} steps of the price for {len(grids)} speedups, actions held for life: they fall at "
        f"{falling / steps:.2%}, who waits goes on waiting at {passive / steps:.2%}, and none is beaten by "
        f"more than {loss:.1g}; optimal actions rise at {sum(g['rises'] for g in grids.values())} of them",
    )


def values_verdict(found: Any) -> Verdict:
    """V must be what value iteration finds, and never more than the cost of one action for life."""
    optimal, held, steps = (np.array(found[key]) for key in ("optimal", "held", "by_steps"))
    apart, saved = (
        float(np.abs(optimal - steps).max()),
        float((1.0 - optimal / np.maximum(held, 1e-12)).max()),
    )
    excess = float((optimal - held).max())
    return Verdict(
        "The least discounted cost of a job is what value iteration finds",
        bool(apart < 1e-3 and excess < 1e-9),
        f"{found['name']}, α = 1, {optimal.size} sizes and prices: largest difference {apart:.1g}; up to "
        f"{saved:.1%} less than one action for life, never more",
    )


def allocations_verdicts(states: list[Any]) -> tuple[Verdict, Verdict]:
    """Whether the policy's allocations tend to WHAM's, with few jobs and with many."""
    few, many = by_mode(states, crowded=False, key="largest"), by_mode(states, crowded=True, key="largest")
    changed = [
        sum(any_ > 0 for any_ in (s["changed"][d] for s in states if s["crowded"]))
        for d in range(len(DISCOUNTS))
    ]
    order = _order(DISCOUNTS, few)
    told = "; ".join(f"α = {a:g}: {gap:.2g}" for a, gap in zip(DISCOUNTS, few, strict=True))
    crowded = sum(s["crowded"] for s in states)
    return (
        Verdict(
            "With fewer jobs than cores the discounted Whittle policy tends to WHAM as α → 0",
            bool(order > 0.9 and few[-1] < CHANGED),
            f"{len(states) - crowded} states on {CORES} cores, largest difference in cores of a job: {told}; "
            f"falls as α to the power {order:.3f}",
        ),
        Verdict(
            "With more jobs than cores it serves whom WHAM serves, with one core each, once α is small",
            bool(many[-1] < CHANGED and changed[-1] == 0),
            "; ".join(
                f"α = {a:g}: {n} of {crowded} states differ" for a, n in zip(DISCOUNTS, changed, strict=True)
            ),
        ),
    )


def simulated_verdict(load: float, found: Apart) -> Verdict:
    """Whether the cost at the smallest discount is WHAM's, as far as can be told."""
    wham, apart = found
    shares = [d.over(wham.mean) for d in apart]
    farthest = max(abs(shares[-1].low), abs(shares[-1].high))
    told = "; ".join(
        f"α = {a:g}: {s.mean:+.3%} ± {s.half_width:.3%}" for a, s in zip(LOADS[load], shares, strict=True)
    )
    near = farthest <= NEGLIGIBLE
    apart_for_sure = min(abs(shares[-1].low), abs(shares[-1].high)) > NEGLIGIBLE and (
        shares[-1].low > 0.0 or shares[-1].high < 0.0
    )
    return Verdict(
        f"At load {load} the cost of the discounted policy is WHAM's within {NEGLIGIBLE:.1%} at α = 0.01",
        True if near else False if apart_for_sure else None,
        f"cost over WHAM's, on the same jobs on {SIMULATED_CORES} cores: {told}",
    )
