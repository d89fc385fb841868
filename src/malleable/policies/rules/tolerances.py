"""Where rounding ends: the tolerances that several rules share, defined once."""

from __future__ import annotations

DUST = 1e-9
"""Cores below this are rounding, not capacity."""
SAME = 1e-9
"""Relative difference of two values that is rounding."""
TIGHT = 1e-12
"""Share of the cores that may be left over or lacking when a market counts as cleared."""
TINY = 1e-200
"""Stands for a remaining size of 0 where it would divide."""
