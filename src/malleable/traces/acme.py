"""Shanghai AI Laboratory's Acme traces, `trace_seren.csv` and `trace_kalos.csv`: development of large models.

Hu et al., *Characterization of large language model development in the datacenter*, 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.table import header_of
from malleable.traces.helios import gpu_jobs

if TYPE_CHECKING:
    from malleable.traces.base import Source


@dataclass(frozen=True)
class Acme(TraceFormat):
    """Shanghai AI Laboratory's Acme traces as CSV: GPU jobs with users and kinds of work."""

    def fits(self, source: Source) -> bool:
        return {"gpu_num", "type", "submit_time"} <= header_of(source)

    def columns(self, source: Source) -> Columns:
        return gpu_jobs(source, queue="partition", application="type")
