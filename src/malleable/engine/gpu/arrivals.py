"""The next job of a replication: when it comes, of which class it is, and how large.

Poisson streams of all classes are merged: job number k of a replication has one counter, which gives the
time since its predecessor, its class (and the component of a mixture), and its size. Renewal streams have a
counter per class: the job's number in its class. Both depend on seed, replication and number alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.laws import ROW, variate
from malleable.engine.gpu.layout import COMPONENTS, EXPONENTIAL_ONLY, M
from malleable.engine.gpu.philox import draws

ONE = np.uint32(1)
FEW = 8
"""Components that are gone through without a branch."""


def poisson_job(
    number: int, replication: int, key: int, mean_gap: float, bounds: Any, kinds: Any, laws: Any
) -> Any:
    """Time since the job before, class and size of a job of merged Poisson streams."""
    first, second, coin = draws(number, 0, replication, key)
    if EXPONENTIAL_ONLY and COMPONENTS <= FEW:
        # All that may be needed is asked for at once.
        mean = laws[1]
        kind = np.int32(kinds[0])
        for k in range(1, COMPONENTS):
            if coin >= bounds[k - 1]:
                mean = laws[ROW * k + 1]
                kind = np.int32(kinds[k])
        return -math.log(first) * mean_gap, kind, -math.log(second) * mean
    component = np.uint32(0)
    final = np.uint32(len(bounds) - 1)
    while component < final and coin >= bounds[component]:
        component = np.uint32(component + ONE)
    return -math.log(first) * mean_gap, np.int32(kinds[component]), variate(laws, component, second)


def renewal_draws(number: int, i: Any, replication: int, key: int, bounds: Any, kinds: Any, laws: Any) -> Any:
    """The gap before job `number` of class i, and its size."""
    first, second, coin = draws(number, i + 1, replication, key)
    components = len(bounds)
    component = 0
    while kinds[component] != i:
        component += 1
    while component < components - 1 and kinds[component + 1] == i and coin >= bounds[component]:
        component += 1
    return variate(laws, components + i, first), variate(laws, component, second)


def earliest(times: Any) -> Any:
    """The class whose next job comes first; ties in order of the classes."""
    found = np.int32(0)
    first = times[0]
    for i in range(1, M):
        if times[i] < first:
            first = times[i]
            found = np.int32(i)
    return found
