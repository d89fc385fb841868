"""Any Python callable s(k), or `file.py:name` in a document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.user_files import load_object
from malleable.errors import MalleableError, ParameterError, WorkloadError
from malleable.speedups.base import NumericSpeedup, Width
from malleable.speedups.table import UNIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Custom(NumericSpeedup):
    """Any Python function s(k) with s(1) = 1, or "file.py:name", used up to `limit` cores."""

    function: Any
    limit: Width = 2.0**20

    def check(self) -> None:
        try:
            speeds = self.grid[1]
        except MalleableError as error:
            raise ParameterError(error.problem, error.hint, ("function", *error.path)) from None
        except Exception as error:
            raise ParameterError(
                f"s(k) raised {error!r:.80}", "s must accept any k ≥ 1", ("function",)
            ) from error
        if abs(speeds[0] - 1.0) > UNIT:
            hint = "speedup is relative to one core: divide by s(1)"
            raise ParameterError(f"must be 1 on one core, got s(1) = {speeds[0]:g}", hint, ("function",))
        bad = ~(np.isfinite(speeds) & (speeds > 0.0))
        if bad.any():
            k, s = self.grid[0][bad][0], speeds[bad][0]
            raise ParameterError(f"must be positive and finite, got s({k:g}) = {s:g}", path=("function",))

    def __eq__(self, other: object) -> bool:
        """Whether both are the same curve: a file may have been edited, and a function loaded twice."""
        if not isinstance(other, Custom):
            return NotImplemented
        return type(self) is type(other) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[float, bytes]:
        return self.limit, self.grid[1].tobytes()

    @cached_property
    def _callable(self) -> Callable[[Any], Any]:
        found = load_object(self.function) if isinstance(self.function, str) else self.function
        if not callable(found):
            raise ParameterError(f"is not callable: {self.function!r:.60}")
        try:
            array_ready = np.shape(found(np.array([1.0, 2.0]))) == (2,)
        except Exception:  # noqa: BLE001 - whatever it raises, it does not take arrays
            array_ready = False
        return found if array_ready else np.vectorize(found, otypes=[float])

    def speed(self, cores: FloatArray) -> FloatArray:
        return np.asarray(self._callable(np.asarray(cores, dtype=float)), dtype=float)

    def capped(self, cores: float) -> Custom:
        return self if self.concave or cores >= self.limit else replace(self, limit=float(cores))

    def parameters(self) -> dict[str, Any]:
        if not isinstance(self.function, str):
            raise WorkloadError(
                f"a Python function cannot be written to a document: {self.function!r:.60}",
                "name it as 'file.py:name', or measure it into a table",
            )
        return super().parameters()
