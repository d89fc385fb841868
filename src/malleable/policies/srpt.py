"""SRPT-n: one core each for the n jobs with the largest c/x (shortest weighted remaining time first).

The overload mode of WHAM, used at all times; no job ever has more than one core (Schrage 1968 for n = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import JobRule, one_core_each

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


def srpt(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:  # noqa: ARG001
    """One core each by decreasing c/x, ties to the earlier arrival."""
    out[:] = 0.0
    one_core_each(jobs, cores, out)


@dataclass(frozen=True)
class Srpt(JobRule):
    """SRPT-n: one core each, largest c/x first."""

    needs = "work left"

    blocking: ClassVar[bool] = False
    whole_cores: ClassVar[bool] = True
    rule = staticmethod(srpt)
    uses_speedups: ClassVar[bool] = False

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - it needs no table
        return np.zeros(1)
