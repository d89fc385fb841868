"""Slurm's accounting, `sacct --parsable2`, in whatever columns it was asked for.

Steps (`123.batch`, `123.0`) are parts of jobs that have a line of their own. A time limit is in minutes where
it is a plain number (`TimelimitRaw`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, Labels, TraceFormat
from malleable.traces.base.fields import moments
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.traces.base import Source
    from malleable.traces.base.table import Table

COMMAND = (
    "sacct --allusers --allocations --parsable2 --starttime=2026-01-01 --format=JobID,User,Account,Partition,"
    "JobName,State,Submit,Start,End,AllocCPUS,ReqCPUS,TimelimitRaw"
)
IDS = ("jobid", "jobidraw")
OWN = {"state", "submit", "elapsed", "elapsedraw", "alloccpus", "reqcpus", "ncpus", "alloctres", "partition"}
"""Names of its columns, one of which stands beside the job's."""
STEP = "a step of a job that has a line of its own"
RUNNING = "not over when the log was written"
NOT_OVER = ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING", "CONFIGURING")


@dataclass(frozen=True)
class Sacct(TraceFormat):
    """Slurm's accounting: what `sacct --parsable2` prints, with any columns."""

    def fits(self, source: Source) -> bool:
        header = header_of(source)
        return bool(header.intersection(IDS)) and bool(header & OWN)

    def columns(self, source: Source) -> Columns:
        table = read_table(source)
        submit, dated = moments(table.needed("Submit", f"write the log with: {COMMAND}", "submit"))
        ids, states = table.first(*IDS), table.first("state")
        refused = {}
        if ids is not None:
            refused[STEP] = np.array(["." in str(one) for one in ids], dtype=bool)
        if states is not None:
            refused[RUNNING] = np.array([str(one).startswith(NOT_OVER) for one in states], dtype=bool)
        return Columns(
            submit=submit,
            cores=_cores(table),
            start=table.moments("start"),
            end=table.moments("end"),
            duration=_run_times(table),
            estimate=_limit(table),
            user=table.words("user", "uid"),
            group=table.words("account", "group"),
            application=table.words("jobname"),
            queue=table.words("partition", "qos"),
            status=None if states is None else Labels.of([_state(str(one)) for one in states]),
            ids=table.ids(*IDS),
            epoch=0.0 if dated else None,
            lost=table.lost,
            refused=refused,
        )


def _state(text: str) -> str:
    """`CANCELLED by 1000` as a word."""
    return text.partition(" ")[0].lower()


def _run_times(table: Table) -> FloatArray | None:
    found = table.lengths("elapsedraw", "elapsed")
    if found is None and not {"start", "end"} <= set(table.columns):
        problem = f"{table.name} has neither Elapsed nor Start and End"
        raise TraceError(problem, f"write the log with: {COMMAND}")
    if found is None or "start" not in table.columns:
        return found
    return np.where((found == 0.0) & np.isnan(moments(table.columns["start"])[0]), np.nan, found)


def _cores(table: Table) -> FloatArray:
    """CPUs that a job had, or else asked for."""
    found = [table.number(name) for name in ("alloccpus", "ncpus", "reqcpus")]
    texts = table.first("alloctres", "reqtres")
    if texts is not None and not isinstance(texts, np.ndarray):
        found.append(cpus_of(texts))
    known = [one for one in found if one is not None]
    if not known:
        raise TraceError(f"{table.name} has no column 'AllocCPUS'", f"write the log with: {COMMAND}")
    cores = known[0]
    for other in known[1:]:
        cores = np.where(cores > 0.0, cores, other)
    return cores


def cpus_of(texts: Sequence[str]) -> FloatArray:
    """The CPUs in lists of resources such as `billing=8,cpu=8,node=2`."""

    def cpus(text: str) -> float:
        parts: dict[str, Any] = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        try:
            return float(parts.get("cpu", "nan"))
        except ValueError:
            return np.nan

    known = {text: cpus(text) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=float)


def _limit(table: Table) -> FloatArray | None:
    """Time limits; `UNLIMITED` and `Partition_Limit` are none."""
    return table.lengths("timelimitraw", "timelimit", unit=60.0)
