"""Functions that tests have joblib call; workers import them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from joblib import Parallel, delayed

if TYPE_CHECKING:
    import numpy as np


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def reciprocal(x: int) -> float:
    return 1 / x


def fail_or_sleep(x: int, seconds: float) -> int:
    if x == 3:
        raise ValueError("three")
    time.sleep(seconds)
    return x


def nested(n: int, **options) -> tuple[int, set[int]]:
    """A parallel call inside a task: in which process the task ran, and in which ones the call did."""
    return os.getpid(), set(Parallel(n_jobs=2, **options)(delayed(pid_after)(0.0) for _ in range(n)))


def place_of(array: np.ndarray) -> tuple[float, str | None, bool]:
    """The sum of an array, the file that it is mapped from, and whether it can be written."""
    file = getattr(array, "filename", None)
    return float(array.sum()), None if file is None else str(file), array.flags.writeable
