"""`malleable paper`: the paper's evaluation and more, computed anew, on one page."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli import _signals
from malleable.cli._running import EngineOption, WorkersOption, read_workers
from malleable.cli._shared import JsonOption, console, print_json, say, table
from malleable.progress import REFRESH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from malleable.paper.reproduce import Reproduction
    from malleable.paper.workers import Report

LINES_APART = 30.0
"""Seconds between two lines about the progress where there is no terminal for a bar."""
COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def command(
    quick: Annotated[bool, typer.Option("--quick", help="Short runs: see that everything works.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Long runs, for narrow intervals: hours.")] = False,
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="The folder to write to; what is there is used.")
    ] = "out/paper",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Only this: fig1, fig2a, fig2b, e04_fwcam, …; may be given several times.",
        ),
    ] = None,
    workers: WorkersOption = None,
    engine: EngineOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper: figures, tables, verdicts and a page; run again, it goes on where it was."""
    from malleable.errors import ParameterError

    if quick and full:
        raise ParameterError("--quick and --full contradict each other", "give one of them, or neither")

    from malleable import api

    effort = "quick" if quick else "full" if full else "normal"
    try:
        with _progress() as progress:
            found = api.reproduce(out, effort, only or None, progress, read_workers(workers), engine)
        _signals.check()
    except KeyboardInterrupt as stop:
        kept = f"{stop.kept} of {stop.total}" if hasattr(stop, "kept") and hasattr(stop, "total") else "all"
        say(f"interrupted: {kept} cells are kept in {out}; the same command goes on from there")
        raise typer.Exit(_signals.status()) from None
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)


def _print(found: Reproduction) -> None:
    from rich.text import Text

    out = console()
    title = f"The paper, reproduced ({found.effort.name})"
    rows = table(title, "experiment", "statement", "verdict", words=3)
    for chapter in found.chapters:
        for verdict in chapter.findings.verdicts:
            word = Text(verdict.word, style=COLOURS[verdict.word])
            rows.add_row(chapter.name, verdict.statement, word)
    out.print(rows)
    for whose, of_the_paper in (("the paper's claims", True), ("claims beyond the paper", False)):
        counts = found.counts(of_the_paper=of_the_paper)
        if counts.total():
            out.print(f"{whose}: {counts['holds']} of {counts.total()} hold")
    out.print(f"{found.page}", soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Callable[[Report], None]]:
    """Stop when asked to; a bar with time left and what is running on stderr, or lines now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    screen = Console(stderr=True)
    shown = 0.0 if screen.is_terminal else time.monotonic()

    def due(seconds: float) -> bool:
        nonlocal shown
        if time.monotonic() - shown < seconds:
            return False
        shown = time.monotonic()
        return True

    def stop_if_asked() -> None:
        _signals.worth_waiting()
        _signals.check()

    if not screen.is_terminal:

        def tell(report: Report) -> None:
            stop_if_asked()
            if due(LINES_APART):
                share = report.done / report.total
                say(f"{report.stage}: {share:.0%} done, {_left(report)}")

        yield tell
        return

    one_line = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    # Drawn from here and not from a thread: worker processes are forked from this one.
    columns = (
        TextColumn("{task.fields[stage]}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[running]}", style="dim", markup=False, table_column=one_line),
    )
    with Progress(*columns, console=screen, transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=None, stage="", left="", running="")

        def report(now: Report) -> None:
            stop_if_asked()
            if due(REFRESH):
                bar.update(
                    task, completed=now.done, total=now.total, stage=now.stage, left=_left(now),
                    running=", ".join(now.running), refresh=True,
                )  # fmt: skip

        yield report


def _left(report: Report) -> str:
    """The time left for people."""
    seconds = report.seconds_left
    if seconds is None:
        return "time left unknown"
    if seconds < 90.0:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60.0:.0f} min left" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h left"
