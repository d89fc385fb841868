"""The numbers of cores that a job can run on: any, whole ones, powers of two, a list, or a range.

    widths = "any"                               every real number of cores (the paper's jobs)
    widths = "whole"                             1, 2, 3, …
    widths = "powers-of-two"                     1, 2, 4, …
    widths = [1, 2, 4, 8]                        these
    widths = { min = 2, max = 16, step = 2 }     2, 4, …, 16; each key may be left out

No cores at all (a job that waits) is always allowed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Spec, frozen, whole_number
from malleable.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

ANY, WHOLE, POWERS = "any", "whole", "powers-of-two"
FORMS = (ANY, WHOLE, POWERS)
HINT = 'write "any", "whole", "powers-of-two", a list such as [1, 2, 4], or { min = 1, max = 16, step = 1 }'


@dataclass(frozen=True)
class Widths(Spec):
    """The allowed widths; `form` is one of `FORMS`, the listed widths, or (least, most, step)."""

    kind: ClassVar[str] = "widths"

    form: Any = ANY
    ranged: bool = False

    @classmethod
    def of(cls, value: Any) -> Widths:
        """Read widths as they stand in a workload file."""
        if isinstance(value, Widths):
            return value
        if isinstance(value, str):
            if value not in FORMS:
                raise ParameterError(f"there are no widths {value!r:.40}", did_you_mean(value, FORMS))
            return cls(value)
        if isinstance(value, Mapping):
            return _range(value)
        listed = frozen(value)
        if not isinstance(listed, tuple) or not listed:
            raise ParameterError(f"not a choice of widths: {value!r:.60}", HINT)
        return cls(tuple(sorted({whole_number("a width", k, 1) for k in listed})))

    @property
    def unrestricted(self) -> bool:
        """Whether every real number of cores is allowed."""
        return bool(self.form == ANY)

    @property
    def least(self) -> int:
        """The narrowest width."""
        return 1 if isinstance(self.form, str) else int(self.form[0])

    def allowed(self, cores: float) -> FloatArray | None:
        """The allowed widths up to `cores`, rising; None where every real number is."""
        n = math.floor(cores + 1e-9)
        if self.form == ANY:
            return None
        if self.form == WHOLE:
            return np.arange(1.0, n + 1.0)
        if self.form == POWERS:
            return np.array([float(1 << level) for level in range(n.bit_length())])
        if self.ranged:
            least, most, step = self.form
            return np.arange(least, min(most, n) + 1, step, dtype=float)
        return np.array([k for k in self.form if k <= n], dtype=float)

    def to_dict(self) -> Any:
        """The value as it stands in a workload file."""
        if isinstance(self.form, str):
            return self.form
        if not self.ranged:
            return list(self.form)
        least, most, step = self.form
        return {"min": least, **({"max": most} if most < math.inf else {}), "step": step}


def _range(value: Mapping[str, Any]) -> Widths:
    for key in value:
        if key not in {"min", "max", "step"}:
            raise ParameterError(
                f"widths have no key {key!r:.40}", did_you_mean(str(key), ["min", "max", "step"])
            )
    least, step = (whole_number(key, value.get(key, 1), 1) for key in ("min", "step"))
    most = whole_number("max", value["max"], 1) if "max" in value else math.inf
    if most < least:
        raise ParameterError(
            f"no width lies between min = {least} and max = {most}", "raise max, or lower min"
        )
    return Widths((least, most, step), ranged=True)
