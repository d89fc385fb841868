"""Equations in the counts of jobs (fluid limits, chains, decision processes) are about the paper's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.errors import UnsupportedError

if TYPE_CHECKING:
    from malleable.model import Workload


def check_any_width(workload: Workload, wanted: str) -> None:
    """Refuse jobs that cannot have any width at any time for free: they have no such `wanted` thing."""
    for one in workload.job_types:
        if not one.plain:
            raise UnsupportedError(
                f"class {one.name!r}: its jobs cannot have any width at any time for free, so no {wanted}",
                "drop shape, widths, resize and quiet, or simulate; `malleable bound` knows of widths",
            )
