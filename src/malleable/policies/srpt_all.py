"""SRPT-all: all cores to the one job with the largest c/x.

Optimal when every job is perfectly parallel, and as wasteful as can be when it is not. A job takes no more
than its peak, beyond which cores only slow it down; what it leaves idles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.policies.base import CLASS, REMAINING, TINY, WEIGHT, JobRule, peak

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def srpt_all(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """All cores to the largest c/x, ties to the earlier arrival."""
    out[:] = 0.0
    first, best = -1, -1.0
    for j in range(jobs.shape[0]):
        index = jobs[j, WEIGHT] / max(jobs[j, REMAINING], TINY)
        if index > best:
            first, best = j, index
    if first >= 0:
        out[first] = min(cores, peak(table, int(jobs[first, CLASS])))


@dataclass(frozen=True)
class SrptAll(JobRule):
    """SRPT-all: all cores to the job with the largest c/x."""

    needs = "work left"

    rule = staticmethod(srpt_all)
