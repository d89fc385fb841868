"""A plain table with named columns, as CSV or Parquet: the format that malleable itself writes.

    id,arrival,duration,cores,class,user,weight,min_cores,max_cores,estimate,wait
    a,0,3600,8,cfd,ann,1,1,64,7200,12

`arrival` and one of `cores` and `size` (work, the time on one core) are needed; without `duration` or `size`,
a study gives run times. Times are in seconds, or dates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.fields import moments
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from malleable.traces.base import Source

ARRIVAL = ("arrival", "submit", "submit_time", "submitted", "time")
DURATION = ("duration", "run_time", "runtime", "elapsed")
SIZE = ("size", "work")
CORES = ("cores", "width", "cpus", "gpus", "nodes")
UNITS = {"gpus": "GPUs", "nodes": "nodes"}
START, END = ("start", "start_time"), ("end", "end_time")
HINT = "name its columns: arrival and duration,cores or size, and if known class,user,weight,estimate"


@dataclass(frozen=True)
class Plain(TraceFormat):
    """A table with named columns (CSV or Parquet): arrival, duration and cores, or size."""

    general: ClassVar[bool] = True

    def fits(self, source: Source) -> bool:
        header = header_of(source)
        return bool(header.intersection(ARRIVAL)) and bool(header.intersection((*CORES, *SIZE)))

    def columns(self, source: Source) -> Columns:
        table = read_table(source)
        submit, dated = moments(table.needed("arrival", HINT, *ARRIVAL))
        cores, size = table.number(*CORES), table.number(*SIZE)
        duration, end = table.lengths(*DURATION), table.moments(*END)
        start = table.moments(*START)
        if cores is None and size is None:
            raise TraceError(f"{source.name} has no column 'cores'", HINT)
        unknown = cores is None
        return Columns(
            submit=submit,
            cores=np.ones(len(submit)) if cores is None else cores,
            start=start,
            end=end,
            duration=duration,
            wait=table.lengths("wait", "wait_time"),
            size=size,
            estimate=table.lengths("estimate", "time_limit", "limit"),
            weight=table.number("weight"),
            min_cores=table.number("min_cores"),
            max_cores=table.number("max_cores"),
            user=table.words("user"),
            group=table.words("group", "account"),
            application=table.words("class", "application"),
            queue=table.words("queue", "partition"),
            status=table.words("status", "state"),
            shape=table.words("shape"),
            ids=table.ids("id", "job", "job_id", "name"),
            unit=next((unit for name, unit in UNITS.items() if name in table.columns), "cores"),
            epoch=0.0 if dated else None,
            lost=table.lost,
            notes=("the log does not say on how many cores jobs ran: 1 each",) if unknown else (),
        )
