"""The next job of a replication: when it comes, of which class it is, and how large.

Poisson streams of all classes are merged: job number k of a replication has one counter, which gives the
time since its predecessor, its class (and the component of a mixture), and its size. Renewal streams have a
counter per class: the job's number in its class. Both depend on seed, replication and number alone.
"""

from __future__ import annotations

import math
from typing import Any

from malleable.engine.gpu.laws import ROW, variate
from malleable.engine.gpu.layout import EXPONENTIAL_ONLY, M
from malleable.engine.gpu.philox import draws


def poisson_job(
    number: int, replication: int, key: int, mean_gap: float, bounds: Any, kinds: Any, laws: Any
) -> Any:
    """Time since the job before, class and size of a job of merged Poisson streams."""
    first, second, coin = draws(number, 0, replication, key)
    component = 0
    while component < len(bounds) - 1 and coin >= bounds[component]:
        component += 1
    if EXPONENTIAL_ONLY:
        size = -math.log(second) * laws[ROW * component + 1]
    else:
        size = variate(laws, component, second)
    return -math.log(first) * mean_gap, int(kinds[component]), size


def renewal_draws(number: int, i: int, replication: int, key: int, bounds: Any, kinds: Any, laws: Any) -> Any:
    """The gap before job `number` of class i, and its size."""
    first, second, coin = draws(number, i + 1, replication, key)
    components = len(bounds)
    component = 0
    while kinds[component] != i:
        component += 1
    while component < components - 1 and kinds[component + 1] == i and coin >= bounds[component]:
        component += 1
    return variate(laws, components + i, first), variate(laws, component, second)


def earliest(times: Any) -> int:
    """The class whose next job comes first; ties in order of the classes."""
    found = 0
    for i in range(1, M):
        if times[i] < times[found]:
            found = i
    return found
