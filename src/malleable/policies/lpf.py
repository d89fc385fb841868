"""LPF, least parallelizable first: classes by ascending κ, by arrival within one (Berg et al. 2022).

With two classes it is Inelastic-First; with more it orders the elastic classes too (κ:
`policies.base.class_priority`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.policies.base.class_priority import ByRank

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Lpf(ByRank):
    """LPF: classes in ascending order of parallelism, each job as wide as is efficient."""

    needs = "speedups"

    def ranks(self, kappas: FloatArray) -> FloatArray:
        return np.unique(kappas, return_inverse=True)[1].astype(float)
