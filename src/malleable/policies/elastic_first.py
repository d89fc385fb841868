"""Elastic-First (Berg, Harchol-Balter, Moseley, Wang, Whitehouse 2020): the mirror of Inelastic-First.

Strict priority for all but the least parallelizable classes (smallest κ, see
`policies.base.class_priority`), by arrival; the inelastic jobs get what remains. Maximises the use of
cores now, and pays for it later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.policies.base.class_priority import ByRank

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class ElasticFirst(ByRank):
    """Elastic-First: the least parallelizable classes last, each job as wide as is efficient."""

    needs = "speedups"

    def ranks(self, kappas: FloatArray) -> FloatArray:
        inelastic = np.asarray(kappas <= kappas.min(), dtype=float)
        return np.asarray(inelastic - inelastic.min(), dtype=float)
