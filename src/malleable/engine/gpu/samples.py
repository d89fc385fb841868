"""Draws of a law as the device makes them, for tests of the laws themselves."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from malleable.engine.gpu.arrivals import draws
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.kernels import for_device, simulated, specialised
from malleable.engine.gpu.laws import variate

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def one_draw(laws: Any, number: int, key: int) -> float:
    """The size that job `number` of replication 0 would have by law 0."""
    _, second, _ = draws(number, 0, 0, key)
    return float(variate(laws, 0, second))


def on_device(laws: Any, key: int, out: Any) -> None:
    """One draw per thread."""
    at = cuda.grid(1)
    if at < out.shape[0]:
        out[at] = one_draw(laws, at, key)


def on_processor(laws: Any, key: int, out: Any) -> None:
    """The same, one after the other."""
    for at in range(out.shape[0]):
        out[at] = one_draw(laws, at, key)


@functools.cache
def _kernel() -> Any:
    return for_device(on_device, {})


def sampled(laws: FloatArray, size: int, seed: int = 0, *, processor: bool = False) -> FloatArray:
    """Draws of the first of the encoded laws."""
    if processor or simulated():
        found = np.empty(size)
        njit(error_model="numpy")(specialised(on_processor, {}, njit(error_model="numpy")))(laws, seed, found)
        return found
    return np.asarray(left_on_device(laws, size, seed).copy_to_host())


def left_on_device(laws: FloatArray, size: int, seed: int = 0) -> Any:
    """The same draws, where they are made."""
    out = cuda.device_array(size, np.float64)
    _kernel()[-(-size // 256), 256](cuda.to_device(laws), seed, out)
    return out
