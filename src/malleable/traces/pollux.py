"""Workloads of Pollux and Sia: `name,time,application,num_replicas,batch_size`, a job of a known application.

They say what is trained and not for how long: a study gives run times (`durations`), and measurements of the
applications give their speedups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.fields import moments, numbers
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from malleable.traces.base import Source

HINT = "the columns are name,time,application,num_replicas and, if known, duration"


@dataclass(frozen=True)
class Pollux(TraceFormat):
    """Workloads of Pollux and Sia as CSV: time, application and replicas of deep-learning jobs."""

    def fits(self, source: Source) -> bool:
        return {"time", "application", "num_replicas"} <= header_of(source)

    def columns(self, source: Source) -> Columns:
        table = read_table(source)
        submit, dated = moments(table.needed("time", HINT, "time"))
        return Columns(
            submit=submit,
            cores=numbers(table.needed("num_replicas", HINT, "num_replicas")),
            duration=table.number("duration"),
            min_cores=table.number("min_replicas"),
            max_cores=table.number("max_replicas"),
            user=table.words("user"),
            application=table.words("application"),
            ids=table.ids("name"),
            unit="GPUs",
            epoch=0.0 if dated else None,
            lost=table.lost,
        )
