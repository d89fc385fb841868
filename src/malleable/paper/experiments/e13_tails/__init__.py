"""Tails and fairness: percentiles of response time and slowdown of every class under every policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.model import paper_workload
from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e13_tails.cells import (
    CORES,
    JOBS,
    LOADS,
    POLICIES,
    QUICK,
    cells,
    key_of,
)
from malleable.paper.experiments.e13_tails.figures import (
    costs_table,
    figure,
    tails_table,
)
from malleable.paper.experiments.e13_tails.verdicts import (
    cheapest,
    undominated,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "setting": f"{CORES} cores, loads {' and '.join(map(str, LOADS))}, the paper's workload",
    "slowdown": "response time over size: 1 is a job alone on one core, less than 1 is faster than that",
    "intervals": "from the scatter of the percentiles over batches of jobs; the first batch is left out",
    "percentiles": "from histograms with 64 bins per octave, interpolated: off by at most 1.6 %",
    "FW-CAM": (
        "β = 0.8 at load 0.25; at load 0.8 that has no plan on 64 cores, so it is the repaired form (at "
        "least one slot per class, no core idle) with β = 0.6"
    ),
    "run length": "at least 30 jobs per core; fewer for slow policies, and where jobs pile up",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Tables of all percentiles, points by class, and what can be said for sure."""
    chosen = QUICK if effort.quick else tuple(POLICIES)
    found = {load: {p: values[key_of(p, load)] for p in chosen} for load in LOADS}
    figures = [figure(key, load, found[load]) for load in LOADS for key in ("response", "slowdown")]
    return Findings(
        title="Tails and fairness",
        source="beyond the paper",
        statement=(
            "WHAM is made to minimise the mean holding cost. Does it pay for that with long waits of a few, "
            "or at the expense of one class? For every policy this shows the median and the 95th and 99th "
            "percentile of the response time of each class, and of its slowdown, the response time over the "
            "job's size: with equal slowdowns all jobs are treated alike."
        ),
        figures=tuple(figures),
        tables=(costs_table(found), tails_table(found)),
        verdicts=(
            *(cheapest(load, found[load]) for load in LOADS),
            *(undominated(load, found[load]) for load in LOADS),
        ),
        remarks=(
            (
                "A policy without a steady state has no percentiles: they grow with the run. The table says "
                "which policies these are, and which have no plan for a load."
            ),
            (
                "FW-CAM's long tails are waits for a slot: on few cores a class has few slots, and none is "
                "lent to another. With one core each the slowdown is 1 as long as no job waits."
            ),
            _few_jobs(effort),
        ),
    )


def _few_jobs(effort: Effort) -> str:
    rates, batch = paper_workload(CORES).rates, JOBS[effort.name][2]
    rarest = batch * min(rates) / sum(rates)
    return (
        f"Percentiles of slow policies rest on few jobs: a batch of {batch} has about {rarest:.0f} of the "
        f"rarest class, and {rarest / 100.0:.1f} of them are beyond its 99th percentile."
    )
