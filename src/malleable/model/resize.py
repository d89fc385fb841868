"""What it costs a job to be resized: a pause, work that is lost, or a function of both widths.

    resize = { pause = 0.5 }                     no progress for so long
    resize = { work = 0.1 }                      work done that has to be done again
    resize = { pause = "costs.py:checkpoint" }   a function (from, to) -> pause, for whole widths

Starting is not resizing. A job that was stopped and runs again is resized, whatever its width before.
The function is asked with the width before, 0 for a job that was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import NonNegative, Spec, validate
from malleable.catalog.user_files import load_object
from malleable.errors import MalleableError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Resize(Spec):
    """The cost of one resize: time without progress (or a function of both widths), and work lost."""

    kind: ClassVar[str] = "resize"

    pause: Any = 0.0
    work: NonNegative = 0.0

    def check(self) -> None:
        if isinstance(self.pause, str):
            object.__setattr__(self, "_reference", self.pause)
            try:
                object.__setattr__(self, "pause", load_object(self.pause))
            except MalleableError as error:
                raise error.within("pause") from None
        if not callable(self.pause):
            try:
                object.__setattr__(self, "pause", validate(NonNegative, self.pause))
            except ParameterError as error:
                hint = "give a time of at least 0, or a function (from, to) -> time as 'file.py:name'"
                raise ParameterError(error.problem, hint, ("pause",)) from None

    def __eq__(self, other: object) -> bool:
        """Whether both cost the same: a function is loaded anew whenever its document is read."""
        return self._content == other._content if isinstance(other, Resize) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[Any, float]:
        if not self.varies:
            return self.pause, self.work
        from malleable.catalog.code_digest import UnknownContentError, code_digest  # noqa: PLC0415 - numba

        try:
            return code_digest(self.pause), self.work
        except UnknownContentError:
            return self.pause, self.work

    @classmethod
    def of(cls, value: Any) -> Resize:
        """Read a cost as it stands in a workload file; a bare function gives the pause."""
        if isinstance(value, Resize):
            return value
        if callable(value):
            return cls(value)
        if not isinstance(value, Mapping):
            raise ParameterError(f"must be a table, got {value!r:.60}", "write { pause = … } or { work = … }")
        for key in value:
            if key not in {"pause", "work"}:
                raise ParameterError(
                    f"resize has no key {key!r:.40}", did_you_mean(str(key), ["pause", "work"])
                )
        return cls(**value)

    @property
    def free(self) -> bool:
        """Whether a resize costs nothing."""
        return self.pause == 0.0 and self.work == 0.0

    @property
    def varies(self) -> bool:
        """Whether the pause depends on the widths."""
        return callable(self.pause)

    def pauses(self, widths: FloatArray) -> FloatArray:
        """The pause of every resize between these widths, no cores first: row before, column after."""
        before = np.concatenate([[0.0], widths])
        if not isinstance(self.pause, Callable):  # type: ignore[arg-type]
            return np.full((len(before), len(before)), float(self.pause))
        table = np.zeros((len(before), len(before)))
        for i, a in enumerate(before.tolist()):
            for j, b in enumerate(before.tolist()):
                if b > 0.0 and a != b:
                    table[i, j] = _checked_pause(self.pause, a, b)
        return table

    def to_dict(self) -> dict[str, Any]:
        """The value as it stands in a workload file."""
        plain: dict[str, Any] = {}
        if callable(self.pause):
            if not hasattr(self, "_reference"):
                raise ParameterError(
                    f"a Python function cannot be written to a document: {self.pause!r:.60}",
                    "name it as 'file.py:name'",
                )
            plain["pause"] = self._reference
        elif self.pause:
            plain["pause"] = self.pause
        return plain | ({"work": self.work} if self.work else {})


def _checked_pause(function: Callable[[float, float], Any], before: float, after: float) -> float:
    place = f"the pause from {before:g} to {after:g} cores"
    try:
        answer = function(before, after)
    except Exception as error:  # noqa: BLE001 - whatever a user's function raises
        raised = " ".join(f"{type(error).__name__}: {error}".split())
        raise ParameterError(f"{place} raises {raised:.80}", "mend the function (from, to) -> time") from None
    try:
        value = float(answer)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not 0.0 <= value < np.inf:
        raise ParameterError(f"{place} is {answer!r:.40}", "return a time of at least 0")
    return value
