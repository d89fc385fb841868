"""Jobs of the simulator ElastiSim: a JSON document with rigid, moldable, malleable and evolving jobs.

What a job computes stands in files beside it, so the log does not say how long it runs: a study gives run
times (`durations`), or takes the wall-time limits (`--duration estimates`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, Labels, TraceFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.traces.base import Source

BROKEN = "an entry that is not a job"


@dataclass(frozen=True)
class Elastisim(TraceFormat):
    """Jobs of the simulator ElastiSim as JSON: rigid, moldable, malleable and evolving ones."""

    def fits(self, source: Source) -> bool:
        head = "".join(source.head[:200]).lstrip()
        return head.startswith(("{", "[")) and '"submit_time"' in head and '"num_nodes' in head

    def columns(self, source: Source) -> Columns:
        entries = _entries(source)
        jobs = [one for one in entries if isinstance(one, dict)]
        least, most = (_numbers(jobs, key) for key in ("num_nodes_min", "num_nodes_max"))
        asked = _numbers(jobs, "num_nodes")
        return Columns(
            submit=_numbers(jobs, "submit_time"),
            cores=np.where(asked > 0.0, asked, np.where(most > 0.0, most, least)),
            duration=_numbers(jobs, "duration") if any("duration" in one for one in jobs) else None,
            estimate=_numbers(jobs, "walltime"),
            min_cores=least,
            max_cores=most,
            shape=Labels.of([str(one.get("type", "")).lower() for one in jobs]),
            user=Labels.of([_user(one) for one in jobs]),
            application=Labels.of([_application(one) for one in jobs]),
            unit="nodes",
            lost={BROKEN: len(entries) - len(jobs)} if len(jobs) < len(entries) else {},
        )


def _entries(source: Source) -> list[Any]:
    try:
        document = json.loads(source.text)
    except ValueError as error:
        problem = f"{source.name} is not valid JSON: {str(error)[:80]}"
        raise TraceError(problem, "was it cut short?") from None
    jobs = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(jobs, list):
        raise TraceError(f"{source.name} has no list of jobs", 'write {"jobs": [{"submit_time": 0, …}]}')
    return jobs


def _numbers(jobs: Sequence[dict[str, Any]], key: str) -> FloatArray:
    """A number of each job; NaN where it has none."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return np.nan

    return np.array([number(one.get(key)) for one in jobs], dtype=float)


def _user(job: dict[str, Any]) -> str:
    attributes = job.get("attributes")
    return str(attributes.get("user", "")) if isinstance(attributes, dict) else ""


def _application(job: dict[str, Any]) -> str:
    """The name of its model's file, or of the model itself."""
    model = job.get("application_model")
    if isinstance(model, dict):
        model = model.get("name", "")
    return PurePath(model).stem if isinstance(model, str) else ""
