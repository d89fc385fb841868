"""`malleable trace`: what a log of jobs looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._logs import FormatOption, LogCoresOption, read_cores, span
from malleable.cli._running import percent
from malleable.cli._shared import JsonOption, console, print_json, show, table

if TYPE_CHECKING:
    from rich.console import Console

    from malleable.traces.describing import TraceSummary
    from malleable.traces.describing.summary import Part

LAWS = {
    "cores": "cores", "duration": "run time, s", "core_seconds": "core-seconds", "size": "size",
    "wait": "wait, s", "interarrival": "time between arrivals, s",
}  # fmt: skip
BARS = " ▁▂▃▄▅▆▇█"
LABEL = 30
"""Letters of the names in front of bars."""
LINES = 24
"""Bars in which the load over time is shown."""


def command(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A log (plain, gzip, zstd or Parquet), a study of one, or - for stdin.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,  # noqa: A002 - the option's name
    cores: LogCoresOption = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the log (.svg, .png or .pdf).")
    ] = None,
    from_broker: Annotated[
        bool, typer.Option("--from-broker", help="Take the jobs that the running broker remembers.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the jobs as a plain CSV log, such as day.csv."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A log of jobs in numbers: load over time, widths, laws, cycles, users, and what was dropped."""
    from malleable import api
    from malleable.errors import ParameterError

    if from_broker == (file is not None):
        hint = "malleable trace log.swf.gz, or malleable trace --from-broker"
        raise ParameterError("give a log, or --from-broker; one of both", hint)
    trace = api.broker_trace() if from_broker else api.read_trace(str(file), format)
    found = api.describe(trace, read_cores(cores))
    drawn = None if plot is None else api.draw(found, plot)
    written = None if out is None else api.write_trace(trace, out)
    if as_json:
        print_json(found.to_dict())
        return
    screen = console()
    _print(screen, found)
    for place, verb in ((drawn, "drawn in"), (written, "written to")):
        if place is not None:
            screen.print(f"{verb} {place}", soft_wrap=True)


def _print(out: Console, found: TraceSummary) -> None:
    trace = found.trace
    facts: list[str] = [f"{len(trace):,} jobs over {span(trace.span)}"]
    if found.cores is not None:
        facts.append(f"{found.cores:g} {trace.unit}")
    if found.load is not None:
        facts.append(f"load {percent(found.load)}")
    if found.peak is not None:
        facts.append(f"up to {found.peak:g} {trace.unit} at once")
    if trace.user is not None:
        facts.append(f"{len(trace.user.names):,} users")
    out.print(f"{trace.name} ({trace.format}): {', '.join(facts)}", soft_wrap=True)
    laws = table("Laws", "", "mean", "SCV", "p50", "p95", "p99", "largest", words=1)
    for name, law in found.laws.items():
        laws.add_row(LAWS[name], *(show(value, 4) for value in law))
    out.print(laws)
    _print_parts(out, "By class", found.classes, found)
    if [part.name for part in found.widths] != [part.name for part in found.classes]:
        _print_parts(out, "By width", found.widths, found)
    if found.users:
        _print_parts(out, "Users with the most core-seconds", found.users, found)
    _print_cycles(out, found)
    for one in trace.dropped:
        out.print(f"dropped: {one.rows:,} row{'s' * (one.rows != 1)}: {one.reason}", soft_wrap=True)
    for note in trace.notes:
        out.print(f"note: {note}", soft_wrap=True)


def _print_parts(out: Console, title: str, parts: list[Part], found: TraceSummary) -> None:
    rows = table(title, "", "jobs", "share", "core-seconds", "mean cores", "mean run time", words=1)
    total = found.core_seconds
    for part in parts:
        used = None if part.core_seconds is None or not total else part.core_seconds / total
        rows.add_row(
            part.name,
            f"{part.jobs:,}",
            percent(_short(part.jobs / len(found.trace))),
            percent(_short(used)),
            show(part.mean_cores, 3),
            "–" if part.mean_duration is None else span(part.mean_duration),
        )
    out.print(rows)


def _short(share: float | None) -> float | None:
    return None if share is None else float(f"{share:.2g}")


def _print_cycles(out: Console, found: TraceSummary) -> None:
    """Jobs by hour and weekday, and the load over time, as rows of small bars."""
    hours, days = found.cycle.sum(axis=0), found.cycle.sum(axis=1)
    out.print(f"{'Arrivals by hour, 0 to 23':<{LABEL}}{bars(hours)}")
    if found.trace.epoch is not None:
        names = ", ".join(f"{name[:3]} {int(count):,}" for name, count in zip(found.days, days, strict=True))
        out.print(f"{'Arrivals by day':<{LABEL}}{names}", soft_wrap=True)
    if found.load_over_time is not None:
        used = found.load_over_time[1]
        means = [
            float(used[i : i + len(used) // LINES].mean()) for i in range(0, len(used), len(used) // LINES)
        ]
        top = f"{max(means):.3g} {found.trace.unit}"
        out.print(f"{f'Load (full bar: {top})':<{LABEL}}{bars(means)}")


def bars(values: Any) -> str:
    """Numbers as a row of bars, the largest of which is full."""
    most = max(values) or 1.0
    return "".join(BARS[round(float(value) / float(most) * (len(BARS) - 1))] for value in values)
