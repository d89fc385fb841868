"""From the bandit to WHAM: optimal actions of a single job, indexability, and the limit of no discount."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Cell, Effort, Findings, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._single_arm import (
    CHANGED,
    action_map,
    actions,
    allocations,
    indexable,
)
from malleable.paper.experiments._whittle_views import (
    DISCOUNTS,
    LOADS,
    RENTS,
    SIMULATED_CORES,
    SIZES,
    arms_figure,
    by_mode,
    differences_table,
    gap,
    index_table,
    limits_table,
    map_figure,
    policy_figure,
    states_table,
    widths_table,
)
from malleable.paper.simulation_cells import compared
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values

CLASSES = ("class-1", "class-2", "class-3")
SPEEDUPS: dict[str, tuple[dict[str, Any], float]] = {
    "k^0.3 (class 1)": ({"kind": "power", "exponent": 0.3}, 1.0),
    "√k (class 2)": ({"kind": "power", "exponent": 0.5}, 2.0),
    "Amdahl, q = 0.2 (class 3)": ({"kind": "amdahl", "sequential": 0.2}, 1.0),
    "k^0.95": ({"kind": "power", "exponent": 0.95}, 1.0),
    "USL, falls beyond 31 cores": ({"kind": "usl", "contention": 0.05, "coherency": 0.001}, 1.0),
    "measured, not concave": (
        {"kind": "table", "cores": [1, 2, 4, 8, 16], "speedup": [1.0, 1.9, 2.5, 5.0, 4.0], "hull": True},
        1.0,
    ),
}
"""Speedups whose indexability is checked, with holding costs."""
CHECKED_DISCOUNTS = (0.001, 0.05, 1.0, 20.0)
CORES = 64
SEED = 7
STATES = {"quick": 8, "normal": 80, "full": 1000}
GRIDS = {"quick": (12, 60), "normal": (40, 240), "full": (80, 500)}
JOBS = {"quick": 2_000, "normal": 25_000, "full": 1_000_000}
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


def cells(effort: Effort) -> list[Cell]:
    """Widths by class, grids by speedup, allocations on random states, and simulations by load."""
    common = {"remaining": list(SIZES), "discounts": list(DISCOUNTS), "rents": list(RENTS)}
    sizes, prices = GRIDS[effort.name]
    jobs = JOBS[effort.name]
    grid = {"discounts": list(CHECKED_DISCOUNTS), "sizes": sizes, "prices": prices}
    asked = {"cores": CORES, "states": STATES[effort.name], "discounts": list(DISCOUNTS), "seed": SEED}
    made = [Cell(f"actions-{i}", actions, {"job_class": i, **common}, 0.2) for i in range(len(CLASSES))]
    made.append(Cell("map", action_map, {"job_class": 1, "discount": 1.0, "sizes": 72, "prices": 72}, 0.1))
    made += [
        Cell(f"indexable-{i}", indexable, {"speedup": s, "weight": c, **grid}, sizes * prices / 5e3)
        for i, (s, c) in enumerate(SPEEDUPS.values())
    ]
    made.append(Cell("allocations", allocations, asked, 0.1 * STATES[effort.name]))
    for load, discounts in LOADS.items():
        policies = ["wham", *(f"whittle:alpha={alpha}" for alpha in discounts)]
        run = {"cores": SIMULATED_CORES, "load": load, "seed": SEED, "jobs": jobs}
        weight = 0.6 + len(discounts) * jobs * (1.0 + 3.0 * load) / 1e5
        made.append(Cell(f"simulated-{load}", compared, {"policies": policies, **run}, weight))
    return made


def findings(effort: Effort, values: Values) -> Findings:  # noqa: ARG001 - the cells say it all
    """Figures, tables, and whether the limit is WHAM."""
    arms = [values[f"actions-{i}"] for i in range(len(CLASSES))]
    grids = {name: values[f"indexable-{i}"] for i, name in enumerate(SPEEDUPS)}
    states = values["allocations"]
    differences = {load: _differences(load, values) for load in LOADS}
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
        figures=(arms_figure(arms), map_figure(values["map"]), policy_figure(states, differences)),
        tables=(
            widths_table(arms),
            limits_table(arms),
            index_table(grids),
            states_table(states),
            differences_table(differences),
        ),
        verdicts=(
            _widths_verdict(arms),
            _thresholds_verdict(arms),
            _indexable_verdict(grids),
            *_allocations_verdicts(states),
            *(_simulated_verdict(load, found) for load, found in differences.items()),
        ),
        remarks=(*REMARKS, *_better(differences)),
    )


def _better(differences: dict[float, tuple[Estimate, list[Estimate]]]) -> tuple[str, ...]:
    """Which discounts cost less than none: WHAM is optimal in the limit of many cores only."""
    found = [
        f"{-d.mean / wham.mean:.2%} at α = {alpha:g} and load {load}"
        for load, (wham, apart) in differences.items()
        for alpha, d in zip(LOADS[load], apart, strict=True)
        if d.high < 0.0
    ]
    text = f"On {SIMULATED_CORES} cores some discount costs less than none, because it looks at sizes: "
    return (f"{text}{', '.join(found)}.",) if found else ()


REMARKS = (
    (
        "The limits of the widths are found by comparing (c + l·k)/s(k) at 4000 widths, not by the formulas "
        "that WHAM uses; every action of the indexability grid is compared with 400 widths and with waiting."
    ),
    (
        "At a fixed discount a long job does not start with one core: below its index it jumps from waiting "
        "to many cores, because time far away hardly counts. Such a policy wastes cores on long jobs, and at "
        "high load it can be unstable: α = 1 at load 0.8 is."
    ),
    (
        "The paper requires of indexability also that free cores are used without limit; where a speedup has "
        "a peak, that is as far as they help."
    ),
)


def _order(discounts: Sequence[float], gaps: Sequence[float]) -> float:
    """The power of α with which the last gaps fall; 0 if they do not fall."""
    if min(gaps[-2:]) <= 0.0:
        return inf if gaps[-1] <= 0.0 else 0.0
    return log(gaps[-2] / gaps[-1]) / log(discounts[-2] / discounts[-1])


def _widths_verdict(arms: list[Any]) -> Verdict:
    """Whether nobody waits in the end, and widths differ by less and less: in proportion to α."""
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


def _thresholds_verdict(arms: list[Any]) -> Verdict:
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


def _indexable_verdict(grids: dict[str, Any]) -> Verdict:
    """Every step must fall, every wait must last, and every action must be the cheapest."""
    steps = sum(g["steps"] for g in grids.values())
    falling, passive = (sum(g[key] for g in grids.values()) for key in ("falling", "passive"))
    loss, free = max(g["worst_loss"] for g in grids.values()), min(g["free_share"] for g in grids.values())
    checked = max(g["worst_rise"] for g in grids.values()) <= 1e-9
    return Verdict(
        "Jobs are indexable: more wait and nobody takes more cores when the price rises",
        bool(falling == passive == steps and checked and loss < 1e-9 and free > 1.0 - 1e-9),
        f"{steps} steps of the price for {len(grids)} speedups: actions fall at {falling / steps:.2%}, who "
        f"waits goes on waiting at {passive / steps:.2%}; no action is beaten by more than {loss:.1g}",
    )


def _allocations_verdicts(states: list[Any]) -> tuple[Verdict, Verdict]:
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


def _differences(load: float, values: Values) -> tuple[Estimate, list[Estimate]]:
    """WHAM's cost, and the paired differences from it by discount."""
    found = values[f"simulated-{load}"]
    apart = [ev.estimate(found["differences"][f"whittle:alpha={alpha}"]) for alpha in LOADS[load]]
    return ev.estimate(found["results"]["wham"]["cost"]), apart


def _simulated_verdict(load: float, found: tuple[Estimate, list[Estimate]]) -> Verdict:
    """Whether the cost at the smallest discount is WHAM's, as far as can be told."""
    wham, apart = found
    shares = [Estimate(*(v / wham.mean for v in (d.mean, d.low, d.high))) for d in apart]
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
