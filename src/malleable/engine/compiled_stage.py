"""The stage between a rule and the cores as machine code, for processes that ask often about many jobs."""

from __future__ import annotations

from typing import Any

from numba import float64, int64, types, void

from malleable.engine.compiling import F1, F2, compiled
from malleable.engine.legal_widths import legalise, set_aside

I1 = int64[::1]


def compiled_stage() -> tuple[Any, Any]:
    """`set_aside` and `legalise` of `legal_widths`, compiled or loaded."""
    tuple_type: Any = types.Tuple
    aside = tuple_type((int64, float64))(F2, F1, float64, float64, F1, I1, F1)
    return compiled(set_aside, aside), compiled(legalise, void(F2, I1, int64, F1, float64, F1, F1))
