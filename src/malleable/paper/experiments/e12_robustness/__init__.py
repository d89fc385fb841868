"""How much of WHAM's lead survives other loads, arrivals and sizes, wrong speedups, whole cores, no sizes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e12_robustness.cells import (
    ARRIVAL_CORES,
    CORES,
    ERROR,
    LOADS,
    POLICIES,
    SIZE_CORES,
    cells,
    loads_of,
)
from malleable.paper.experiments.e12_robustness.figures import (
    RIVALS,
    arrivals_table,
    loads_figure,
    misled_table,
    of_kind,
    pairs_table,
    settings_figure,
    small_figure,
    small_table,
)
from malleable.paper.experiments.e12_robustness.readings import scvs, troubles
from malleable.paper.experiments.e12_robustness.verdicts import (
    CHEAP,
    blind_verdict,
    costs_little,
    limits_verdict,
    predicted_verdict,
    sized,
    sizes_verdicts,
    wham_is_better,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]

CHOICES = {
    "n": f"{CORES} cores; {ARRIVAL_CORES} for arrivals, {', '.join(map(str, SIZE_CORES))} for sizes",
    "loads": ", ".join(map(str, LOADS)),
    "arrivals": (
        "independent renewal processes, one per class: constant intervals (SCV 0), Erlang of two stages "
        "(0.5), exponential (1), hyperexponential with balanced means (4)"
    ),
    "sizes": (
        "lognormal of SCV 4; Pareto of shape 1.5 cut off at 1000 times its least value; means as in the paper"
    ),
    "wrong speedups": (
        "WHAM shares out cores with p₁, p₂ (power laws) and q₃ (Amdahl) each 20 % too small, right, or 20 % "
        "too large; jobs run at their true speeds"
    ),
    "unknown sizes": (
        "with N ≥ n the order is by c/E[remaining size | work done so far] instead of c/x, asked again at "
        "every arrival and departure; ties go to the earlier arrival"
    ),
    "run length": "a fixed number of jobs for each question, more at high load",
}


def findings(effort: Effort, values: Values) -> Findings:
    """All settings in figures and tables, with verdicts on each kind of trouble."""
    pairs = [
        *((f"load {load:g}", values[f"load-{load}"]) for load in loads_of(effort)),
        *((f"arrivals, SCV {scv:g}", values[f"arrivals-{scv}"]) for scv in scvs(values)),
        *((f"{name}, n = {n}", found) for name, n, found in sized(values)),
    ]
    small = troubles(values)
    return Findings(
        title="How robust is WHAM?",
        source="beyond the paper",
        statement=(
            "The paper's figures show one workload at one load, with Poisson arrivals, phase-type sizes and "
            "exactly known speedups. Here each of these is changed in turn: loads from nearly idle to nearly "
            "full, regular and bursty arrivals, heavy-tailed sizes, speedups that WHAM gets wrong, whole "
            "cores only, and jobs of unknown size. All costs are compared on the same jobs."
        ),
        figures=(
            loads_figure(loads_of(effort), values),
            settings_figure(pairs[len(loads_of(effort)) :]),
            small_figure(small),
        ),
        tables=(pairs_table(pairs), arrivals_table(values), small_table(small), misled_table(values)),
        verdicts=(
            *(
                wham_is_better(f"WHAM is better than {POLICIES[p][0]} in every setting", p, pairs)
                for p in RIVALS
            ),
            predicted_verdict(values),
            *sizes_verdicts(values),
            costs_little(f"Speedups wrong by {ERROR:.0%} cost at most {CHEAP:.0%}", of_kind("wrong", small)),
            limits_verdict(values),
            costs_little(f"Whole cores cost at most {CHEAP:.0%}", of_kind("whole", small)),
            blind_verdict(of_kind("unknown", small)),
        ),
        remarks=REMARKS,
    )


REMARKS = (
    (
        "V* knows neither fluctuations nor queues. On 64 cores all policies are far above it at both ends: "
        "at low load few jobs are there to share the cores, at high load there are queues."
    ),
    (
        "V* depends on sizes only through their means. For sizes without phases there is no mean-field "
        "equation here, so that the limit is extrapolated from simulations."
    ),
    (
        "What wrong speedups cost depends on how they are wrong: if all look better, or all worse, than they "
        "are, the price adjusts, and the error costs less than when some look better and others worse. On "
        "few cores an error may even help a little: WHAM is optimal for many."
    ),
    (
        "While jobs do not outnumber cores, WHAM looks at no sizes. Not knowing them matters at high load on "
        "few cores only."
    ),
)
