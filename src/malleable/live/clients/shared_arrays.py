"""Large arrays that many units use: written to a file once, and mapped by the workers.

An array that is sent once travels with its unit. One that is sent again (the data of a grid search, with each
of its fits) is written to a temporary folder, and units carry its name only. Workers see it read-only.
"""

from __future__ import annotations

import io
import pickle
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    AnyArray = np.ndarray[Any, Any]


class SharedArrays:
    """The arrays of at least so many bytes that have been sent; their files go when this is closed."""

    def __init__(self, least_bytes: int, folder: str | None = None) -> None:
        self._least, self._parent = least_bytes, folder
        self._seen: dict[int, weakref.ref[AnyArray]] = {}
        self._files: dict[int, tuple[AnyArray, str]] = {}
        """Each array with its file; it is kept alive, so that no other can have its identity."""
        self._folder: Path | None = None
        self._remove: Callable[[], Any] | None = None

    def dumps(self, what: Any) -> bytes:
        """Bytes that `call_packed` reads; by value what another process cannot import."""
        buffer = io.BytesIO()
        _Pickler(buffer, self).dump(what)
        return buffer.getvalue()

    def file_of(self, array: AnyArray) -> str | None:
        """The file of an array that is to be shared; None for one that travels with its unit."""
        if array.nbytes < self._least or array.dtype.hasobject:
            return None
        key = id(array)
        if key in self._files:
            return self._files[key][1]
        seen = self._seen.get(key)
        if seen is None or seen() is not array:
            self._seen[key] = weakref.ref(array, lambda _: self._seen.pop(key, None))
            return None
        return self._write(array)

    def close(self) -> None:
        """Remove the files; workers that have mapped one keep it."""
        self._seen.clear()
        self._files.clear()
        if self._remove is not None:
            self._remove()
        self._folder = self._remove = None

    def _write(self, array: AnyArray) -> str | None:
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="malleable-arrays-", dir=self._parent))
                self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            file = self._folder / f"{len(self._files)}.npy"
            np.save(file, array, allow_pickle=False)
        except OSError:  # no room: it travels with its units
            return None
        self._files[id(array)] = array, str(file)
        return str(file)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # no types are known of it
    def __init__(self, buffer: io.BytesIO, arrays: SharedArrays) -> None:
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self._arrays = arrays

    def reducer_override(self, what: Any) -> Any:
        if type(what) is np.ndarray and (file := self._arrays.file_of(what)) is not None:
            return np.load, (file, "r")
        return super().reducer_override(what)


def call_packed(packed: bytes) -> Any:
    """Call what `SharedArrays.dumps` has packed."""
    return pickle.loads(packed)()  # noqa: S301 - from the process that started this worker
