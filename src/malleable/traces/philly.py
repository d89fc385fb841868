"""Microsoft's Philly trace as one flat table: `timestamp,duration,num_gpus,gpu_time,cluster`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.fields import moments, numbers
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from malleable.traces.base import Source

HINT = "the columns are timestamp,duration,num_gpus and, if known, cluster,user,status"


@dataclass(frozen=True)
class Philly(TraceFormat):
    """Microsoft's Philly trace as a flat CSV file: timestamp, duration, GPUs, virtual cluster."""

    def fits(self, source: Source) -> bool:
        return {"timestamp", "duration", "num_gpus"} <= header_of(source)

    def columns(self, source: Source) -> Columns:
        table = read_table(source)
        submit, dated = moments(table.needed("timestamp", HINT, "timestamp"))
        return Columns(
            submit=submit,
            cores=numbers(table.needed("num_gpus", HINT, "num_gpus")),
            duration=numbers(table.needed("duration", HINT, "duration")),
            user=table.words("user"),
            queue=table.words("cluster", "vc"),
            status=table.words("status"),
            unit="GPUs",
            epoch=0.0 if dated else None,
            lost=table.lost,
        )
