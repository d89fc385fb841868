"""FW-CAM and WHAM against the lower bound as the number of cores grows: Figure "FW-CAM vs. WHAM"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e02_converge.cells import BETAS, cells, cores_of
from malleable.paper.experiments.e02_converge.figures import RATE_FROM, exact_table, figure, rates_table
from malleable.paper.experiments.e02_converge.readings import best_curve, fixed_curve, wham_curve
from malleable.paper.experiments.e02_converge.verdicts import (
    SETTLED,
    converges_faster,
    fixed_converges,
    stays_above,
    wham_converges,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.curves import costs_table
from malleable.paper.experiments.shared.fw_cam_pools import CANDIDATES

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

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
            wham_converges(wham, lowest),
            *(fixed_converges(beta, values, lowest) for beta in BETAS),
            converges_faster(wham, [*fixed, best], lowest, rates),
            ev.agreement(exact, [case for c in fixed for case in c.cases()], effort.precision / 2.0),
            stays_above(curves, lowest),
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
