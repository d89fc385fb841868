"""Where kernels run: on a CUDA device (or in numba's simulator of one), or on this processor."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from malleable.engine.gpu import reductions
from malleable.engine.gpu.cuda_api import cuda
from malleable.engine.gpu.kernels import (
    Specialisation,
    device_kernel,
    launch,
    plain_kernel,
    processor_kernel,
    simulated,
)
from malleable.engine.gpu.layout import COUNTERS, JOB, PRESENT, STATUS, WHOLE
from malleable.engine.rule_interface import DONE

THREADS = 128
"""Threads per block of the small kernels."""
MOST_THREADS = 2048
"""Threads that a multiprocessor can hold, of kernels that need little."""


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

    def launch(
        self, made_for: Specialisation, threads: int, arguments: tuple[Any, ...], stream: int = 0
    ) -> None:
        """Run the kernel; those in different streams may run side by side."""
        ...

    def columns(self, array: Any, columns: Any) -> Any:
        """Copies of some columns, for this processor."""
        ...

    def sum_groups(self, sums: Any, whole: Any, groups: int) -> tuple[Any, int]:
        """Sums over each group of replications (t modulo `groups`), and the largest status."""
        ...

    def fold(self, histogram: Any, total: Any) -> None:
        """Add the copies of a histogram to the total, and empty them."""
        ...

    def retire(self, whole: Any, sums: Any, columns: Any) -> None:
        """Leave some replications alone from now on."""
        ...

    @property
    def most_replications(self) -> int:
        """Replications that fill it, whatever the kernel: so all policies run the same ones."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...


class Device:
    """A CUDA device."""

    local = True

    def __init__(self) -> None:
        self._streams: list[Any] = []
        self._trouble: Any = None

    def upload(self, array: Any) -> Any:
        return cuda.to_device(np.ascontiguousarray(array))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return cuda.device_array(shape, dtype)

    def download(self, array: Any) -> Any:
        return array.copy_to_host()

    def launch(
        self, made_for: Specialisation, threads: int, arguments: tuple[Any, ...], stream: int = 0
    ) -> None:
        # Work of the default stream, as sums and copies, waits for all of these and they for it.
        while len(self._streams) <= stream:
            self._streams.append(cuda.stream())
        launch(device_kernel(made_for), threads, made_for.threads, *arguments, stream=self._streams[stream])

    def columns(self, array: Any, columns: Any) -> Any:
        flat = array.reshape(-1, array.shape[-1])
        out = cuda.device_array((flat.shape[0], len(columns)), array.dtype)
        self._start(reductions.take_columns, out.size, flat, self.upload(columns), out)
        return self.download(out).reshape(*array.shape[:-1], len(columns))

    def sum_groups(self, sums: Any, whole: Any, groups: int) -> tuple[Any, int]:
        fields = sums.shape[0] + (whole.shape[0] - WHOLE) // COUNTERS
        partial = cuda.device_array((fields, reductions.CHUNKS, groups), np.float64)
        if self._trouble is None:
            self._trouble = self.upload(np.zeros(1, dtype=np.int64))
        self._start(reductions.sum_groups, partial.size, sums, whole, partial, self._trouble)
        status = int(self.download(self._trouble)[0])
        if status:
            self._trouble = None
        return partial, status

    def fold(self, histogram: Any, total: Any) -> None:
        self._start(reductions.fold_histogram, total.size, histogram, total)

    def retire(self, whole: Any, sums: Any, columns: Any) -> None:
        self._start(reductions.retire, len(columns), whole, sums, self.upload(columns))

    @staticmethod
    def _start(kernel: Any, threads: int, *arguments: Any) -> None:
        launch(plain_kernel(kernel), threads, min(THREADS, threads), *arguments)

    @property
    def most_replications(self) -> int:
        return int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * MOST_THREADS

    @property
    def name(self) -> str:
        name = cuda.get_current_device().name
        return name.decode() if isinstance(name, bytes) else str(name)


class Processor:
    """The same code on this processor, one replication after another: for tests, and to check a device by."""

    local = False

    def upload(self, array: Any) -> Any:
        return np.array(array, order="C")

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    def download(self, array: Any) -> Any:
        return array.copy()

    def launch(
        self,
        made_for: Specialisation,
        threads: int,  # noqa: ARG002
        arguments: tuple[Any, ...],
        stream: int = 0,  # noqa: ARG002
    ) -> None:
        processor_kernel(made_for)(*arguments)

    def columns(self, array: Any, columns: Any) -> Any:
        return array[..., columns].copy()

    def sum_groups(self, sums: Any, whole: Any, groups: int) -> tuple[Any, int]:
        present = whole[WHOLE + PRESENT :: COUNTERS].astype(float)
        found = np.concatenate([sums, present])
        sums[:] = 0.0
        missing = -found.shape[1] % groups
        padded = np.pad(found, ((0, 0), (0, missing))).reshape(len(found), -1, groups)
        return padded, int(whole[STATUS].max())

    def fold(self, histogram: Any, total: Any) -> None:
        total += histogram.sum(axis=0, dtype=np.int64)
        histogram[:] = 0

    def retire(self, whole: Any, sums: Any, columns: Any) -> None:
        whole[:, columns] = 0
        sums[:, columns] = 0.0
        whole[STATUS, columns], whole[JOB, columns] = DONE, reductions.NEVER

    @property
    def most_replications(self) -> int:
        return 64

    @property
    def name(self) -> str:
        return "this processor"


class Simulator(Processor):
    """The kernel of a device in numba's simulator, which has a thread of Python for each of the device's.

    What is done around it is done by NumPy: thousands of such threads would take minutes.
    """

    local = True

    def launch(
        self,
        made_for: Specialisation,
        threads: int,
        arguments: tuple[Any, ...],
        stream: int = 0,  # noqa: ARG002
    ) -> None:
        launch(device_kernel(made_for), threads, 1, *arguments)

    @property
    def most_replications(self) -> int:
        return 4

    @property
    def name(self) -> str:
        return "numba's CUDA simulator"


def default_backend() -> Backend:
    """The device there is, or what stands in for it."""
    return Simulator() if simulated() else Device()
