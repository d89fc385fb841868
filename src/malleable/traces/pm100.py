"""PM100, the jobs of Marconi100, in Parquet: Slurm's accounting with power. Time limits are in minutes.

Antici et al., *PM100: a job power consumption dataset of a large-scale production HPC system*, 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.fields import moments, numbers
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from malleable.traces.base import Source

HINT = "the columns are job_id,user_id,submit_time,start_time,end_time,num_cores_alloc,time_limit,partition"


@dataclass(frozen=True)
class Pm100(TraceFormat):
    """PM100 of Marconi100 (Parquet or CSV): jobs on cores, with users and queues."""

    def fits(self, source: Source) -> bool:
        return {"num_cores_alloc", "submit_time"} <= header_of(source)

    def columns(self, source: Source) -> Columns:
        table = read_table(source)
        submit, dated = moments(table.needed("submit_time", HINT, "submit_time"))
        return Columns(
            submit=submit,
            cores=numbers(table.needed("num_cores_alloc", HINT, "num_cores_alloc")),
            start=table.moments("start_time"),
            end=table.moments("end_time"),
            duration=table.lengths("run_time"),
            estimate=table.lengths("time_limit", unit=60.0),
            user=table.words("user_id"),
            group=table.words("group_id"),
            queue=table.words("partition"),
            status=table.words("job_state"),
            ids=table.ids("job_id"),
            epoch=0.0 if dated else None,
            lost=table.lost,
        )
