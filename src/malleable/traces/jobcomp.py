"""Slurm's job completion log, `JobCompType=jobcomp/filetxt`: a line of KEY=VALUE per record.

A job that is resized leaves a record in state RESIZING each time, with the width that it had until then; the
last record says how it ended. Its width here is the mean over its run, so that core-seconds are those of the
log. Time limits are in minutes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, Labels, TraceFormat
from malleable.traces.base.fields import lengths, moments, numbers
from malleable.traces.sacct import cpus_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.contracts import FloatArray
    from malleable.traces.base import Source

USED = ("JobId", "UserId", "GroupId", "Name", "JobState", "Partition", "TimeLimit", "StartTime", "EndTime",
        "ProcCnt", "Tres", "Account", "SubmitTime")  # fmt: skip
OTHERS = ("NodeList", "NodeCnt", "WorkDir", "ReservationName", "QOS", "WcKey", "Cluster", "EligibleTime",
          "DerivedExitCode", "ExitCode")  # fmt: skip
FIELD = re.compile(rf"(?:^|\s)({'|'.join((*USED, *OTHERS))})=")
NUMBERED = re.compile(r"\(\d+\)$")
BROKEN = "a line that is not a record of a job"
OPEN = "resized, and not over when the log ends"
RESIZING = "RESIZING"


@dataclass(frozen=True)
class Jobcomp(TraceFormat):
    """Slurm's job completion log (jobcomp/filetxt); resized jobs are put together from their records."""

    def fits(self, source: Source) -> bool:
        return any(line.startswith("JobId=") and " JobState=" in line for line in source.head[:50])

    def columns(self, source: Source) -> Columns:
        records, lost = _records(source.lines())
        if not len(records["JobId"]):
            problem = f"{source.name} holds no jobs of jobcomp/filetxt"
            raise TraceError(problem, "leave out --format for others")
        submit, dated = moments(records["SubmitTime"])
        start, end = (moments(records[key])[0] for key in ("StartTime", "EndTime"))
        cores = numbers(records["ProcCnt"])
        cores = np.where(cores > 0.0, cores, cpus_of(records["Tres"]))
        jobs = _joined(records["JobId"], records["JobState"])
        if jobs.open:
            lost[OPEN] = jobs.open
        last = np.array(jobs.last, dtype=np.intp)
        begun, width = _over_segments(jobs, start, end, cores)

        def words(key: str) -> Labels:
            return Labels.of([NUMBERED.sub("", records[key][i]) for i in jobs.last])

        return Columns(
            submit=submit[last],
            cores=width,
            start=begun,
            end=end[last],
            estimate=lengths([records["TimeLimit"][i] for i in jobs.last], unit=60.0),
            user=words("UserId"),
            group=words("Account"),
            application=words("Name"),
            queue=words("Partition"),
            status=Labels.of([records["JobState"][i].lower() for i in jobs.last]),
            ids=np.array([*(records["JobId"][i] for i in jobs.last), None], dtype=object)[:-1],
            epoch=0.0 if dated else None,
            lost=lost,
            notes=_notes(jobs),
        )


def _records(lines: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The fields of all records, by key, and how many lines are none."""
    found: dict[str, list[str]] = {key: [] for key in USED}
    broken = 0
    for line in lines:
        if not line.strip():
            continue
        parts = FIELD.split(line)
        if len(parts) < 3 or parts[0].strip() or parts[1] != "JobId":
            broken += 1
            continue
        fields: dict[str, Any] = dict(zip(parts[1::2], parts[2::2], strict=True))
        for key in USED:
            found[key].append(fields.get(key, "").strip())
    return found, {BROKEN: broken} if broken else {}


@dataclass
class _Jobs:
    """Records put together: of each job the last one, and those before it in which it was resized."""

    last: list[int] = field(default_factory=list)
    before: dict[int, list[int]] = field(default_factory=dict)
    """By the place of the last record."""
    open: int = 0
    """Records of jobs that have no last one."""


def _joined(ids: list[str], states: list[str]) -> _Jobs:
    found = _Jobs()
    resized: dict[str, list[int]] = {}
    for i, (name, state) in enumerate(zip(ids, states, strict=True)):
        if state == RESIZING:
            resized.setdefault(name, []).append(i)
            continue
        found.last.append(i)
        if name in resized:
            found.before[i] = resized.pop(name)
    found.open = sum(map(len, resized.values()))
    return found


def _over_segments(
    jobs: _Jobs, start: FloatArray, end: FloatArray, cores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """When each job began, and its mean width."""
    begun, width = start[jobs.last].copy(), cores[jobs.last].copy()
    for place, i in enumerate(jobs.last):
        if i not in jobs.before:
            continue
        parts = [*jobs.before[i], i]
        begun[place] = min(start[parts])
        lasted = end[parts] - start[parts]
        if lasted.sum() > 0.0:
            width[place] = float((cores[parts] * lasted).sum() / lasted.sum())
    return begun, width


def _notes(jobs: _Jobs) -> tuple[str, ...]:
    if not jobs.before:
        return ()
    many, parts = len(jobs.before), sum(map(len, jobs.before.values()))
    what = "job was" if many == 1 else "jobs were"
    said = f"{many:,} {what} resized while running ({parts:,} records besides the last)"
    return (f"{said}; the width is the mean over the run",)
