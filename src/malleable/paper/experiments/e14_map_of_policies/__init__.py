"""Which policy wins, and by how much, over many random workloads: a map with its worst cases named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e14_map_of_policies.cells import (
    IMPROVED_CORES,
    MANY,
    SIZES,
    cells,
)
from malleable.paper.experiments.e14_map_of_policies.figures import (
    improved_figure,
    leads,
    machine_map,
    refined_figure,
    refined_table,
    winners_table,
    workload_map,
    workloads_table,
    worst_table,
)
from malleable.paper.experiments.e14_map_of_policies.readings import improved_rows, rows_of
from malleable.paper.experiments.e14_map_of_policies.verdicts import (
    hardly_beaten,
    improved_helps,
    loses_little,
    mostly_best,
    refined_is_near,
)
from malleable.paper.experiments.e14_map_of_policies.workloads import LOADS, SCVS, SPREAD

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "workloads": (
        f"as many for each number of cores and classes: 2 to 4 classes (2 or 3 beyond {MANY} cores), arrival "
        "rates in ratios of up to 10, mean sizes in ratios of up to 20, power laws with p from 0.1 to 0.95, "
        "Amdahl's law with q from 0.02 to 0.6, or the universal scalability law"
    ),
    "loads": f"uniform between {LOADS[0]:g} and {LOADS[1]:g}",
    "sizes": f"one SCV for all classes of a workload: {', '.join(f'{v:g}' for v in SCVS)}",
    "holding costs": f"the largest is 1 to {SPREAD:g} times the least, uniform in the logarithm",
    "full effort": (
        f"{19 * SIZES['full on a GPU']['count']} workloads with a GPU, {19 * SIZES['full']['count']} without"  # type: ignore[operator]
    ),
    "improved WHAM": (
        f"up to {IMPROVED_CORES} cores, on the first workloads with exponential sizes of each kind, at full "
        "effort only: a plan takes a second, and for other sizes more"
    ),
    "intervals": "99.9 % for who wins on a workload, from 32 independent groups of replications or batches",
}


def findings(effort: Effort, values: Values) -> Findings:
    """The maps, the worst cases, and what they say."""
    rows, improved = rows_of(values), improved_rows(values)
    devices = sorted({one["device"] for v in values.values() for one in _simulated(v) if one["device"]})
    return Findings(
        title="A map of policies",
        source="beyond the paper",
        statement=(
            "The paper compares WHAM with EQUI and GREEDY on one workload, and proves it optimal as the "
            f"number of cores grows. Here the three meet on {len(rows)} random workloads on few and many "
            "cores, all on the same jobs: how often does each win, by how much, and where does WHAM lose "
            "most? The refined mean field, which needs no simulation, is held against the same costs."
        ),
        figures=(
            machine_map(rows),
            workload_map(rows),
            leads(rows),
            *((improved_figure(improved),) if improved else ()),
            refined_figure(rows),
        ),
        tables=(winners_table(rows), worst_table(rows), refined_table(rows), workloads_table(rows)),
        verdicts=(
            mostly_best(rows),
            loses_little(rows),
            hardly_beaten(rows),
            *((improved_helps(improved),) if improved else ()),
            refined_is_near(rows),
        ),
        remarks=(
            *REMARKS,
            f"Simulated on {', '.join(devices)}." if devices else "Simulated on processors.",
            f"This is effort {effort.name}: "
            + ("few workloads." if effort.name != "full" else "all of them."),
        ),
    )


def _simulated(value: object) -> list[dict[str, str]]:
    return [one for one in value if "device" in one] if isinstance(value, list) else []


REMARKS = (
    (
        "A workload is named by classes, cores and number; random_workload(classes, cores, number) of this "
        "experiment's `workloads` makes it again."
    ),
    (
        "GREEDY serves in order of arrival when jobs outnumber cores, so variable sizes at high load on few "
        "cores cost it many times as much as WHAM. That is a matter of the queue, not of sharing out cores."
    ),
    (
        "The improved WHAM is made for jobs of unknown size. With known sizes WHAM has the better order when "
        "jobs outnumber cores, so that it may win at high load."
    ),
)
