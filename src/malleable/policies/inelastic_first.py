"""Inelastic-First (Berg, Harchol-Balter, Moseley, Wang, Whitehouse 2020).

Strict priority for the inelastic jobs, those of the least parallelizable classes (smallest κ, see
`policies.base.class_priority`); the others share what remains, both by arrival. Optimal for two classes with
κ = 1 and κ = n and exponential sizes when inelastic jobs are no larger on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.policies.base.class_priority import ByRank

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class InelasticFirst(ByRank):
    """Inelastic-First: the least parallelizable classes first, each job as wide as is efficient."""

    needs = "speedups"

    def ranks(self, kappas: FloatArray) -> FloatArray:
        return np.asarray(kappas > kappas.min(), dtype=float)
