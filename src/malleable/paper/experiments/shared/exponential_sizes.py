"""The paper's workload with exponential sizes, for which more can be computed exactly."""

from __future__ import annotations

from typing import Any

from malleable.model import load_workload


def exponential(*names: str) -> dict[str, Any]:
    """Classes of the paper's workload (all, or those named) with exponential sizes of the same means."""
    paper = load_workload("paper")
    rows = [c.to_dict() for c in paper.classes if not names or c.name in names]
    for row in rows:
        mean = paper.classes[paper.index(row["name"])].size.mean
        row["size"] = {"kind": "exponential", "mean": mean}
    return {"name": "paper, exponential sizes", "classes": rows}
