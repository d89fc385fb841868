"""The next job of a replication: when it comes, of which class it is, and how large; and the random numbers.

Poisson streams of all classes are merged: job number k of a replication has one counter, which gives the
time since its predecessor, its class (and the component of a mixture), and its size. Renewal streams have a
counter per class: the job's number in its class. Both depend on seed, replication and number alone.

Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).

A random number is a function of a key (the seed) and a counter (replication, stream, number of the job), so
it does not matter which thread asks for it, when, or how often. Two policies see the same jobs because they
ask for the same counters.

All integers are explicit `uint32` and `uint64`: numba would make floats of a mixture with Python's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from malleable.engine.gpu.laws import ROW, variate
from malleable.engine.gpu.layout import COMPONENTS, EXPONENTIAL_ONLY, M

FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
FIRST_STEP, SECOND_STEP = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
TWENTY, FOUR, TWELVE = np.uint64(20), np.uint64(4), np.uint64(12)
LOW_SIXTEEN, HIGH_SIXTEEN = np.uint64(0xFFFF), np.uint64(0xFFFF0000)
BETWEEN_ONE_AND_TWO = np.uint64(0x3FF0000000000008)
"""Sign and exponent of a number in [1, 2), and half the distance of those with 48 bits behind the point."""
ROUNDS = 10


def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Four random words from a counter of four words and a key of two, all as `uint64` below 2**32.

    Masks before the products tell the compiler that one instruction for 32-bit factors will do.
    """
    for _ in range(ROUNDS):
        first = FIRST_FACTOR * (c0 & LOW)
        second = SECOND_FACTOR * (c2 & LOW)
        c0 = (second >> HALF) ^ c1 ^ k0
        c1 = second & LOW
        c2 = (first >> HALF) ^ c3 ^ k1
        c3 = first & LOW
        k0 = (k0 + FIRST_STEP) & LOW
        k1 = (k1 + SECOND_STEP) & LOW
    return c0, c1, c2, c3


def draws(job: Any, stream: Any, replication: Any, key: Any) -> Any:
    """Two uniform numbers strictly between 0 and 1, of 48 bits, and one of 32 bits in [0, 1).

    They belong to the job of that number of that stream of that replication under that key.
    """
    counter, seed = np.uint64(job), np.uint64(key)
    a, b, c, d = philox(
        counter & LOW, counter >> HALF, np.uint64(replication), np.uint64(stream), seed & LOW, seed >> HALF
    )
    first = uniform((a << TWENTY) | ((b & LOW_SIXTEEN) << FOUR))
    second = uniform((d << TWENTY) | ((b & HIGH_SIXTEEN) >> TWELVE))
    return first, second, np.float64(c) * 2.0**-32


def uniform(bits: Any) -> Any:
    """48 random bits, four places from the right, and a half as a number strictly between 0 and 1.

    They are put behind the point of 1, which is then subtracted: a conversion would take longer.
    """
    return np.uint64(bits | BETWEEN_ONE_AND_TWO).view(np.float64) - 1.0


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
