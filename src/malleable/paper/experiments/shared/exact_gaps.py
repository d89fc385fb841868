"""The optimal policy beside others on small systems, as cells: exact costs on one truncated chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.model import Workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import evaluate
from malleable.theory.optimal_policy import Optimum, optimum
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Mapping


def gaps(
    workload: Mapping[str, Any],
    cores: int,
    load: float,
    *,
    policies: list[str],
    whole: list[str],
    max_states: int,
) -> dict[str, Any]:
    """Costs of the optimum and of policies, with any widths and (if some are named) on whole cores."""
    made = Workload.from_dict(dict(workload)).at(cores, load)
    best = optimum(made, cores, widths="real", max_states=max_states)
    value = {
        "cores": cores,
        "load": load,
        "limit": best.limit,
        "states": len(best.cores),
        "bound": bound(made, cores).bound_capped,
        "real": _beside(made, cores, best, policies),
    }
    if whole:
        integer = optimum(made, cores, best.limit, max_states=max_states)
        value["whole"] = _beside(made, cores, integer, whole)
    return value


def _beside(made: Workload, cores: int, best: Optimum, policies: list[str]) -> dict[str, Any]:
    """An optimum, and what policies cost on its chain; each with the share of arrivals that find it full."""
    states = len(best.cores)
    found = {
        p: evaluate(made, cores, class_speeds(Policy.of(p), made, cores), best.limit, max_states=states)
        for p in policies
    }
    return {
        "optimum": best.cost,
        "low": best.low,
        "high": best.high,
        "lost": best.mass_at_limit,
        "policies": {p: {"cost": one.cost, "lost": one.mass_at_limit} for p, one in found.items()},
    }
