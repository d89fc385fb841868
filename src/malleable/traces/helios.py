"""SenseTime's Helios trace, `cluster_log.csv`: user, virtual cluster, GPUs, and the times of each job.

Hu et al., *Characterization and prediction of deep learning workloads in large-scale GPU datacenters*, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.fields import moments, numbers
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from malleable.traces.base import Source

HINT = "the columns are job_id,user,vc,gpu_num,state,submit_time,start_time,end_time,duration"
ON_CPUS = "a job without GPUs"


@dataclass(frozen=True)
class Helios(TraceFormat):
    """SenseTime's Helios trace as CSV: GPU jobs with users and virtual clusters."""

    def fits(self, source: Source) -> bool:
        return {"gpu_num", "vc", "submit_time"} <= header_of(source)

    def columns(self, source: Source) -> Columns:
        return gpu_jobs(source, queue="vc", application="jobname")


def gpu_jobs(source: Source, queue: str, application: str) -> Columns:
    """A table of GPU jobs with the names that Helios gave its columns, which Acme kept."""
    table = read_table(source)
    submit, dated = moments(table.needed("submit_time", HINT, "submit_time"))
    cores = numbers(table.needed("gpu_num", HINT, "gpu_num"))
    return Columns(
        submit=submit,
        cores=cores,
        start=table.moments("start_time"),
        end=table.moments("end_time"),
        duration=table.number("duration"),
        user=table.words("user"),
        queue=table.words(queue),
        application=table.words(application),
        status=table.words("state"),
        ids=table.ids("job_id"),
        unit="GPUs",
        epoch=0.0 if dated else None,
        lost=table.lost,
        refused={ON_CPUS: cores == 0.0},
    )
