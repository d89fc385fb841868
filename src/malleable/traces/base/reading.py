"""`read_trace`: find the format of a log by its content, and read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable import catalog
from malleable.errors import MalleableError, TraceError
from malleable.traces.base.columns import trace_of
from malleable.traces.base.source import open_source
from malleable.traces.base.trace_format import TraceFormat

if TYPE_CHECKING:
    from pathlib import Path

    from malleable.traces.base.source import Source
    from malleable.traces.base.trace import Trace


def read_trace(path: str | Path, format: str | None = None) -> Trace:  # noqa: A002 - the field's word
    """Read a log, plain or packed; `format` says what it is where its content does not."""
    chosen = None if format is None else catalog.build("traces", format, TraceFormat)
    source = open_source(path)
    if not source.data.strip():
        raise TraceError(f"{source.name} is empty", "give a log with one line per job")
    chosen = chosen or find_format(source)
    try:
        return trace_of(chosen.columns(source), source.name, chosen.kind)
    except RecursionError:
        raise TraceError(f"{source.name} is nested too deeply") from None
    except MalleableError as error:
        if format is None or error.hint:
            raise
        raise TraceError(error.problem, "leave out the format, and it is found by content") from None


def formats() -> list[TraceFormat]:
    """One of each format."""
    made = [catalog.find("traces", kind) for kind in sorted(catalog.kinds("traces"))]
    return [one() for one in made if issubclass(one, TraceFormat)]


def find_format(source: Source) -> TraceFormat:
    """The format that the beginning of a file looks like."""
    known = sorted(formats(), key=lambda one: one.general)
    for one in known:
        if one.fits(source):
            return one
    names = ", ".join(one.kind for one in known)
    shown = source.first.strip()
    first = f": its first line is {shown!r:.60}" if shown.isprintable() and shown else ""
    problem = f"cannot tell the format of {source.name}{first}"
    raise TraceError(problem, f"say it with --format ({names}); `malleable list traces` describes them")
