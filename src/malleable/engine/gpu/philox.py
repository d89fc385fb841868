"""Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).

A random number is a function of a key (the seed) and a counter (replication, stream, number of the job), so
it does not matter which thread asks for it, when, or how often. Two policies see the same jobs because they
ask for the same counters.

All integers are explicit `uint32` and `uint64`: numba would make floats of a mixture with Python's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

U32, U64 = np.uint32, np.uint64
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
FIRST_STEP, SECOND_STEP = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
SIXTEEN = np.uint64(16)
LOW_SIXTEEN = np.uint64(0xFFFF)
ROUNDS = 10
UNIT = 2.0**-48
"""The distance of neighbouring uniform numbers."""


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
    first = np.float64((a << SIXTEEN) | (b & LOW_SIXTEEN))
    second = np.float64((d << SIXTEEN) | (b >> SIXTEEN))
    return (first + 0.5) * UNIT, (second + 0.5) * UNIT, np.float64(c) * 2.0**-32
