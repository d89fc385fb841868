"""The Standard Workload Format 2.2 of the Parallel Workloads Archive: 18 numbers per line, -1 for missing.

Header lines begin with a semicolon. Lines with status 2, 3 or 4 are parts of jobs that have a line of their
own besides. (Chapin et al., *Benchmarks and standards for the evaluation of parallel job schedulers*, 1999.)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, Labels, TraceFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.traces.base import Source

WIDTH = 18
STRETCH = 1 << 15
"""Lines that are read at a time; a stretch with a mistake in it is read again line by line."""
SHORT = "fewer than 18 numbers"
STATUS = {0: "failed", 1: "completed", 2: "partial", 3: "partial", 4: "partial", 5: "cancelled"}
PARTIAL = "a part of a job that has a line of its own"
KEYS = ("version:", "computer:", "maxjobs:", "maxprocs:", "maxnodes:", "unixstarttime:", "installation:")


@dataclass(frozen=True)
class Swf(TraceFormat):
    """Standard Workload Format 2.2 of the Parallel Workloads Archive."""

    def fits(self, source: Source) -> bool:
        if any(line.lstrip(" ;").lower().startswith(KEYS) for line in source.head if line.startswith(";")):
            return True
        first = next((line for line in source.head if line.strip() and line[0] != ";"), "")
        return len(first.split()) == WIDTH and _numbers([first]) is not None

    def columns(self, source: Source) -> Columns:
        header: dict[str, str] = {}
        rows, lost = _read(source.lines(), header)
        if not len(rows):
            said = f" ({lost} lines have fewer than 18 numbers)" if lost else ""
            hint = "a line of the Standard Workload Format has 18 numbers; leave out --format for others"
            raise TraceError(f"{source.name} holds no jobs in SWF{said}", hint)
        _, submit, wait, run, allocated, _, _, requested, limit, _, status, user, group, program, queue = (
            np.where(column == -1.0, np.nan, column) for column in rows.T[:15]
        )
        return Columns(
            submit=submit,
            cores=np.where(allocated > 0.0, allocated, requested),
            duration=run,
            wait=wait,
            estimate=limit,
            user=Labels.of_numbers(user, "user-"),
            group=Labels.of_numbers(group, "group-"),
            application=Labels.of_numbers(program, "program-"),
            queue=Labels.of_numbers(queue, "queue-"),
            status=_status(status),
            ids=_ids(rows[:, 0]),
            epoch=_epoch(header),
            machine=_machine(header),
            lost={SHORT: lost} if lost else {},
            refused={PARTIAL: np.isin(status, (2.0, 3.0, 4.0))},
        )


def _read(lines: Iterator[str], header: dict[str, str]) -> tuple[FloatArray, int]:
    """All rows, and how many lines are none; what the header says goes into `header`."""
    parts: list[FloatArray] = []
    lost = 0
    while some := list(islice(lines, STRETCH)):
        for line in some:
            if line.startswith(";"):
                key, colon, value = line.lstrip("; ").partition(":")
                if colon:
                    header.setdefault(key.strip().lower(), value.strip())
        jobs = [line for line in some if line and line[0] != ";" and not line.isspace()]
        part = _numbers(jobs)
        if part is None:
            read = [one for one in (_numbers([line]) for line in jobs) if one is not None]
            lost += len(jobs) - len(read)
            part = np.concatenate(read) if read else np.empty((0, WIDTH))
        parts.append(part)
    return np.concatenate(parts) if parts else np.empty((0, WIDTH)), lost


def _numbers(lines: list[str]) -> FloatArray | None:
    """The numbers of lines that all have at least 18 of them; None for others."""
    if not lines:
        return np.empty((0, WIDTH))
    try:
        found = np.loadtxt(lines, comments=None, ndmin=2)
    except ValueError:
        return None
    return found[:, :WIDTH] if found.shape[1] >= WIDTH else None


def _status(codes: FloatArray) -> Labels:
    """Codes of the format as words."""
    names = tuple(dict.fromkeys(STATUS.values()))
    places = np.full(len(codes), -1, dtype=np.intp)
    for code, name in STATUS.items():
        places[codes == code] = names.index(name)
    return Labels(names, places)


def _ids(column: FloatArray) -> NDArray[Any]:
    """Job numbers, whole where they are."""
    with np.errstate(invalid="ignore"):
        whole = np.abs(column) < 2.0**53
    return column.astype(np.int64) if whole.all() else column


def _number(header: dict[str, str], key: str) -> float | None:
    try:
        value = float(header.get(key, "").split()[0])
    except (ValueError, IndexError):
        return None
    return value if np.isfinite(value) else None


def _machine(header: dict[str, str]) -> float | None:
    """How many processors there were."""
    sizes = (_number(header, "maxprocs"), _number(header, "maxnodes"))
    return next((one for one in sizes if one is not None and one >= 1.0), None)


def _epoch(header: dict[str, str]) -> float | None:
    """When the log begins, on a clock of the place."""
    began = _number(header, "unixstarttime")
    if began is None:
        return None
    try:
        zone = ZoneInfo(header["timezonestring"])
        offset = datetime.fromtimestamp(began, zone).utcoffset()
        return began + (offset.total_seconds() if offset is not None else 0.0)
    except (KeyError, ValueError, OSError, OverflowError):
        return began + (_number(header, "timezone") or 0.0)
