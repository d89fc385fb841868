"""Where kernels run: on a CUDA device (or in numba's simulator of one), or on this processor."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numba import cuda

from malleable.engine.gpu.kernels import Specialisation, device_kernel, processor_kernel

THREADS = 128
"""Threads per block."""


class Backend(Protocol):
    """Memory and launches."""

    local: bool
    """Whether there is local memory, which is faster than the device's."""

    def upload(self, array: Any) -> Any:
        """A copy of an array of this processor."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array of anything."""
        ...

    def download(self, array: Any) -> Any:
        """A copy for this processor."""
        ...

    def launch(self, made_for: Specialisation, threads: int, arguments: tuple[Any, ...]) -> None:
        """Run the kernel."""
        ...


class Device:
    """A CUDA device."""

    local = True

    def upload(self, array: Any) -> Any:
        return cuda.to_device(np.ascontiguousarray(array))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return cuda.device_array(shape, dtype)

    def download(self, array: Any) -> Any:
        return array.copy_to_host()

    def launch(self, made_for: Specialisation, threads: int, arguments: tuple[Any, ...]) -> None:
        blocks = -(-threads // THREADS)
        device_kernel(made_for)[blocks, min(THREADS, threads)](*arguments)


class Processor:
    """The same code on this processor, one replication after another: for tests, and to check a device by."""

    local = False

    def upload(self, array: Any) -> Any:
        return np.array(array, order="C")

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    def download(self, array: Any) -> Any:
        return array.copy()

    def launch(self, made_for: Specialisation, threads: int, arguments: tuple[Any, ...]) -> None:  # noqa: ARG002
        processor_kernel(made_for)(*arguments)
