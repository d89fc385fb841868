"""Why FW-CAM is mean-field optimal: its widths converge, its cores fill up, and no job waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e04_fwcam.cells import (
    BETAS,
    cells,
)
from malleable.paper.experiments.e04_fwcam.figures import (
    figure,
    queues_table,
    simulated_table,
    widths_table,
)
from malleable.paper.experiments.e04_fwcam.readings import (
    cases_of,
    class_cases,
    comparisons,
)
from malleable.paper.experiments.e04_fwcam.verdicts import (
    effective_load_verdict,
    no_queueing,
    slots_verdict,
    widths_converge,
)
from malleable.paper.experiments.shared import evidence as ev

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

    Runs = list[tuple[float, int, Any, Any]]

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "beta": "0.76, 0.8 and 0.9: near the least that the paper allows, the package's default, and a large one",
    "n": "powers of 2: widths to 2^50, waiting to 4096 where M/PH/c is quick enough, simulations 16 to 16384",
    "run length": "until the 95 % interval of the cost is ±1 % (±0.05 % at full effort)",
    "warm-up": "found by MSER-5 and left out",
    "slots": "rounded down after adding 1e-9, so that a slot that fits up to rounding counts",
    "agreement": (
        "all exact values in intervals of 99.9 % for all of them together, or within half the precision"
    ),
}


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the tables, and what they say."""
    runs = list(comparisons(effort, values))
    cases, classes = list(cases_of(runs)), list(class_cases(runs))
    near = effort.precision / 2.0
    return Findings(
        title="FW-CAM: widths converge, cores fill up, queues vanish",
        source="Lemma on the convergence of k, Lemma on no queueing",
        statement=(
            "FW-CAM runs every job of class i on the same number of cores k_i, the best widths for a machine "
            "of only n − n^β cores; the other n^β are slack against randomness. As n grows the slack becomes "
            "a vanishing share of the machine, so k_i tends to k_i*, the width in the lower bound, and the "
            "effective load (the share of cores in use) tends to 1. Yet the slack grows fast enough that "
            "queues vanish. Together this makes FW-CAM optimal in the limit."
        ),
        figures=(figure(values, runs),),
        tables=(widths_table(values), queues_table(values), simulated_table(runs)),
        verdicts=(
            *(widths_converge(beta, values) for beta in BETAS),
            effective_load_verdict(values),
            slots_verdict(values),
            *(no_queueing(beta, values) for beta in BETAS),
            ev.agreement("Simulated costs agree with Erlang C and M/PH/c", cases, near),
            ev.agreement("Simulated response times of all classes agree with them, too", classes, near),
        ),
        remarks=(
            (
                "The bound of Li and Goldberg that the paper's proof uses needs some 10^10 cores before it "
                "says anything here. The queues are short long before."
            ),
            (
                "Waiting does not fall at every step: slots are whole, and what rounding down takes away "
                "weighs most when there are few."
            ),
            "A class of hyperexponential sizes with too many slots for M/PH/c has no exact waiting time.",
        ),
    )
