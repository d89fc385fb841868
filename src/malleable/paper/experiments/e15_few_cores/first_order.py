"""The best 1/n term beside exact chains, as cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.contracts import Policy
from malleable.paper.experiments.e15_few_cores.systems import WORKLOADS
from malleable.paper.simulation_cells import described
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import evaluate
from malleable.theory.meanfield import mean_field
from malleable.theory.optimal_policy import optimum


def first_order(name: str, cores: int, load: float) -> dict[str, Any]:
    """V* and both coefficients by theory, and the exact costs of the optimum and of size-blind WHAM."""
    made, wham = described(WORKLOADS[name][1], cores, load), Policy.of("wham")
    field = mean_field(made, cores, wham, starts=0)
    jobs = sum(one.jobs for one in field.classes)
    most = int(60 + jobs + 14.0 * np.sqrt(jobs))
    best = optimum(made, cores, most, widths="real")
    own = evaluate(made, cores, class_speeds(wham, made, cores), most)
    theory = field.first_order
    return {
        "bound": field.cost,
        "optimum": best.cost,
        "wham": own.cost,
        "lost": own.mass_at_limit,
        "best term": theory.best,
        "wham term": theory.wham,
        "applies": theory.applies,
    }
