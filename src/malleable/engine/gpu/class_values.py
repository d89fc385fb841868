"""One value per class, read and written by a class that is known only at run time.

Clocks, counts and speeds of all classes stand in registers, and registers have no addresses: `values[i]`
with an i that is computed would put all of them into memory. So all classes are gone through, each with a
fixed number, and the one that is meant is taken. From nine classes on the values are in memory, and are
addressed.

All whole numbers are 32 bits wide, and places are unsigned: of a Python integer numba would make 64 bits,
which take two registers and two instructions, and would test whether a signed place counts from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.engine.gpu.layout import M

UNROLLED = 8
"""Classes whose clocks, speeds and counts are kept in registers."""


def chosen(values: Any, i: Any, none: Any) -> Any:
    """values[i]; `none` is a zero of the same type."""
    if M > UNROLLED:
        return values[np.uint32(i)]
    found = none
    for k in range(M):
        if np.int32(k) == i:
            found = values[k]
    return found


def store(values: Any, i: Any, value: Any) -> None:
    """values[i] = value."""
    if M > UNROLLED:
        values[np.uint32(i)] = value
        return
    for k in range(M):
        if np.int32(k) == i:
            values[k] = value


def add(values: Any, i: Any, value: Any) -> None:
    """values[i] += value."""
    if M > UNROLLED:
        values[np.uint32(i)] += value
        return
    for k in range(M):
        if np.int32(k) == i:
            values[k] += value
