"""Which of the rivals come close to the lower bound as the number of cores grows? None, says the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings
from malleable.paper.experiments.e09_rivals.cells import (
    PLANNED,
    cells,
    groups,
)
from malleable.paper.experiments.e09_rivals.figures import (
    figure,
    limits_table,
    sweep_figure,
    sweep_table,
    table,
)
from malleable.paper.experiments.e09_rivals.readings import (
    START,
    rival_of,
    wham_of,
)
from malleable.paper.experiments.e09_rivals.verdicts import (
    MARGIN,
    tuned_verdicts,
    verdict_of,
    wham_verdict,
)

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

__all__ = ["CHOICES", "cells", "findings"]
CHOICES = {
    "n": "powers of 2 from 16 to 256 (full: 512); policies that look at counts alone also up to 4096",
    "load": "0.25, as in the paper's figures",
    "run length": "at least 30 jobs per core; slow policies have the shorter runs, and wider intervals",
    "FW-CAM": "β = 0.8",
    "KNEE": "α = 0.02 mean sizes (0.008) at every n; the sweep shows others",
    "LPF": "κ of a class is the width at which cores are half used, s(κ) = κ/2; the sweep shows others",
    "A-heSRPT": "one exponent, fitted to all speedups, weighted by load; holding costs are the weights",
    "Pollux, Sia": "one resource; decide every 0.01 mean sizes in place of 60 seconds; resizes are free",
    "not optimal": (
        "the paired difference from WHAM does not fall with n, and its limit lies above "
        f"{MARGIN:.1%} of V* with 99.9 % confidence, by a + b/n + c/n² fitted to n ≥ {START}; or the policy "
        "is unstable on the most cores"
    ),
}


def findings(effort: Effort, values: Values) -> Findings:
    """One table, one plot, and a verdict on every rival."""
    lowest = values["limits"]["bound"]
    rivals = {p: rival_of(p, group, effort, values) for group, ps in groups(effort).items() for p in ps}
    wham = wham_of(effort, values)
    return Findings(
        title="Rivals against the lower bound",
        source="Section: Comparison to heuristics",
        statement=(
            "A policy is mean field optimal if its cost tends to the lower bound V* as cores and arrival "
            "rates grow together. The paper says that EQUI, GREEDY, HELL, KNEE and A-heSRPT can easily be "
            "shown not to be, and shows it for the first two. Here all of them, the schedulers Pollux and "
            "Sia reduced to one resource, and LPF, are run on the same jobs as WHAM, on more and more cores. "
            "What counts is whether the share by which they cost more than V* is left when WHAM's has gone."
        ),
        figures=(figure(values["limits"], wham, rivals), *sweep_figure(values, lowest)),
        tables=(
            table(lowest, wham, rivals),
            limits_table(values["limits"], rivals),
            *sweep_table(values, lowest),
        ),
        verdicts=(
            wham_verdict(wham, lowest),
            *(verdict_of(p, rival, values["limits"]) for p, rival in rivals.items() if p != PLANNED),
            *tuned_verdicts(values),
        ),
        remarks=(_hell(values["limits"]), *REMARKS),
    )


def _hell(known: Any) -> str:
    return (
        "HELL gives a job of class 2, with s = √k, every core there is: all widths have the same merit, and "
        "ties go to the widest. On n cores such a job runs only √n times as fast, so beyond "
        f"{known['crowded']:.0f} cores work of class 2 alone arrives faster than it is done, at load 0.25."
    )


REMARKS = (
    ("GREEDY with weights c/x gives very many cores to jobs about to finish. It does worse on more cores."),
    (
        "Limits of policies that look at class counts are those of their mean-field equations; for the "
        "others there is only the extrapolation; its interval presumes that a + b/n + c/n² is right. For "
        "FW-CAM it is not: its gap falls as a power of n, slowly, so that the difference from WHAM tells "
        "nothing about the limit. Of the rivals, that difference grows with n."
    ),
    (
        "Pollux and Sia decide only now and then. Resizes are free here, for all policies; what they cost "
        "where they are not stands on the page 'Real machines' of the documentation."
    ),
)
