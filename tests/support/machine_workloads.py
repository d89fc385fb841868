"""Random workloads with all that machines demand of jobs: shapes, widths, costs of a resize, quiet times."""

from __future__ import annotations

import warnings

import numpy as np

from malleable.contracts import Changes
from malleable.model import ConditionWarning, Workload

SHAPES = ("malleable", "malleable", "moldable", "rigid")


def demanding(rng, workload, cores, *, resize=True):
    """The same workload on a machine that demands things of its jobs, at random."""
    document = workload.to_dict()
    for row in document["classes"]:
        row.update(random_widths(rng, cores))
        if resize:
            row.update(random_costs(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return Workload.from_dict(document)


def random_widths(rng, cores):
    """Shape and widths of a class that fit the machine."""
    shape = str(rng.choice(SHAPES))
    if shape == "rigid":
        return {"shape": shape, "width": int(rng.integers(1, cores + 1))}
    widths = (
        "any",
        "whole",
        "powers-of-two",
        sorted({int(k) for k in rng.integers(1, cores + 1, 3)}),
        {"min": int(rng.integers(1, cores + 1)), "step": int(rng.integers(1, 4))},
    )
    return {"shape": shape, "widths": widths[rng.integers(0, len(widths))]}


def random_costs(rng):
    """What a resize costs, and for how long a job is quiet after it."""
    costs = {}
    if rng.random() < 0.5:
        costs["resize"] = {"pause": float(rng.uniform(0.0, 0.5))}
    elif rng.random() < 0.5:
        costs["resize"] = {"pause": float(rng.uniform(0.0, 0.1)), "work": float(rng.uniform(0.0, 0.3))}
    if rng.random() < 0.4:
        costs["quiet"] = float(rng.uniform(0.0, 2.0))
    return costs


def random_changes(rng, cores, until, count=4):
    """Pairs of a time and a number of cores; in the end all are back."""
    times = np.sort(rng.uniform(0.0, until, count))
    pairs = [(float(t), int(k)) for t, k in zip(times, rng.integers(0, cores + 1, count), strict=True)]
    return [*pairs[:-1], (pairs[-1][0], cores)]


class GivenChanges:
    """Changes of the number of cores as a machine asks for them."""

    def __init__(self, cores, pairs, each=2):
        self.cores_at_start, self.pairs, self.each = cores, list(pairs), each

    def take(self):
        """The next few."""
        some, self.pairs = self.pairs[: self.each], self.pairs[self.each :]
        times, cores = np.array([t for t, _ in some]), np.array([float(k) for _, k in some])
        return Changes(times, cores, float(times[-1]) if self.pairs else np.inf)
