"""What a policy says that it needs to know, held against what changes its decisions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from malleable import catalog
from malleable.contracts import Policy
from malleable.model import Workload
from malleable.model.jobs import Jobs

SLOW = {"wham_fitted", "wham_improved"}
"""Policies whose plan takes seconds."""
POLICIES = [
    pytest.param(policy, marks=pytest.mark.slow) if policy in SLOW else policy
    for policy in sorted(catalog.kinds("policies"))
]
OTHERS = {
    "rates": {"rates": (0.4, 0.9, 0.6)},
    "mean sizes": {"means": (2.0, 1.0, 5.0)},
    "laws of sizes": {"law": {"kind": "erlang", "stages": 4}},
    "speedups": {"shares": (0.3, 0.02, 0.08)},
}


def workload(
    rates: Any = (1.0, 0.5, 0.25),
    means: Any = (1.0, 2.0, 4.0),
    law: Any = None,
    shares: Any = (0.02, 0.1, 0.3),
) -> Workload:
    """Three classes; `law` is that of their sizes, whose means stay."""
    classes = [
        {
            "name": f"class-{i}",
            "arrivals": {"kind": "poisson", "rate": 3.0 * rate},
            "size": {**(law or {"kind": "exponential"}), "mean": mean},
            "speedup": {"kind": "amdahl", "sequential": share},
            "holding_cost": (1.0, 2.0, 0.7)[i],
        }
        for i, (rate, mean, share) in enumerate(zip(rates, means, shares, strict=True))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Workload.from_dict({"name": "needs", "classes": classes})


def decisions(policy: str, told: Workload, *, backwards: bool = False) -> list[Any]:
    """Cores of some crowds of jobs; with `backwards` their sizes are exchanged."""
    rng, found = np.random.default_rng(1), []
    cores = 64.0
    if policy.startswith("fw_cam"):  # it has a plan for large loads only
        cores = 1024.0
        told = told.at(cores, 0.5)
    for count in (2, 5, 12, 90):
        index, left = rng.integers(0, 3, count), rng.exponential(2.0, count)
        jobs = Jobs.of(told, index, left[::-1].copy() if backwards else left)
        found.append(Policy.of(policy).allocate(jobs, cores).cores)
    return found


def differ(some: list[Any], others: list[Any]) -> bool:
    return any(not np.allclose(a, b, atol=1e-6) for a, b in zip(some, others, strict=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_not_named_changes_no_decision(policy):
    """Other sizes, rates, means, laws or speedups change what a policy decides only if it names them."""
    needs = catalog.find("policies", policy).needs
    assert needs, "say what it needs to know"
    usual = decisions(policy, workload())
    changed = {what for what, other in OTHERS.items() if differ(usual, decisions(policy, workload(**other)))}
    if differ(usual, decisions(policy, workload(), backwards=True)):
        changed.add("work left")
    if "laws of sizes" in needs:
        changed.discard("mean sizes")
    assert {what for what in changed if what not in needs} == set()
