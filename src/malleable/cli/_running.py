"""What `simulate` and `compare` share: options of a run, the progress bar, and where the work goes."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli import _signals
from malleable.cli._shared import console, number, say, show, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from malleable.results import Result
    from malleable.statistics import Estimate

REFRESH = 0.1
"""Seconds between two pictures of the progress bar."""

JobsOption = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        metavar="M",
        help="Jobs of a replication (1e6, more on very many cores); with --precision at most.",
    ),
]
SeedOption = Annotated[str, typer.Option("--seed", metavar="S", help="Seed; replication r has seed S + r.")]
ReplicationsOption = Annotated[
    str, typer.Option("--replications", metavar="K", help="Independent replications, spread over the cores.")
]
PrecisionOption = Annotated[
    str | None,
    typer.Option("--precision", metavar="E", help="Run until the cost is known to ±E (0.01 is 1 %)."),
]
WarmupOption = Annotated[
    str | None,
    typer.Option("--warmup", metavar="W", help="Jobs to leave out at the start; found by MSER-5 otherwise."),
]
ConfidenceOption = Annotated[str, typer.Option("--confidence", metavar="C", help="Level of the intervals.")]
InterpretedOption = Annotated[
    bool, typer.Option("--interpreted", help="Run the same kernels uncompiled, to debug a policy.")
]
UnstableOption = Annotated[
    bool, typer.Option("--allow-unstable", help="Run at a load of 1 or more, over a finite horizon.")
]
WidthsOption = Annotated[
    bool, typer.Option("--widths", help="Also record on how many cores work was done (25 % slower).")
]
SizesOption = Annotated[
    str,
    typer.Option(
        "--sizes",
        metavar="known|unknown",
        help="Whether policies know sizes, or only their law and the work done.",
    ),
]
BoundOption = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="jobs",
        help="Also bound what a scheduler that knows all jobs must pay, from some streams of jobs.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|cpu|gpu",
        help="What simulates; auto is the GPU where there is one and the run is long enough.",
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option("--workers", metavar="K", help="Processes to use at most; one per processor otherwise."),
]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Run on a Ray cluster: ray://host:port, auto or local."),
]


def settings(
    *,
    jobs: str | None,
    seed: str,
    replications: str,
    precision: str | None,
    warmup: str | None,
    confidence: str,
    interpreted: bool,
    allow_unstable: bool,
    widths: bool,
    sizes: str,
    capacity: str | None,
    bound: str | None,
    engine: str,
) -> dict[str, Any]:
    """The options of a run, read; the library checks them."""
    return {
        "jobs": None if jobs is None else whole(jobs, "jobs", "1e6"),
        "seed": whole(seed, "seed", "0"),
        "replications": whole(replications, "replications", "5"),
        "precision": None if precision is None else number(precision, "precision"),
        "warmup": None if warmup is None else whole(warmup, "warmup", "10000"),
        "confidence": number(confidence, "confidence"),
        "interpreted": interpreted,
        "allow_unstable": allow_unstable,
        "widths": widths,
        "sizes": sizes,
        "capacity": capacity,
        "bound": bound,
        "engine": engine,
    }


def executor(ray: str | None) -> AbstractContextManager[Any]:
    """Where tasks go: processes of this machine, or a Ray cluster."""
    if ray is None:
        return nullcontext()
    from malleable import api

    made = api.ray_executor(ray)
    _signals.take_over()  # Ray sets handlers of its own
    return made


def read_workers(workers: str | None) -> int | None:
    """How many processes to use; the library checks it."""
    return None if workers is None else whole(workers, "workers", "4")


@contextmanager
def progress_bar(
    unit: str = "jobs", starting: str = "starting (first use compiles)"
) -> Iterator[Callable[[int, int], None]]:
    """Stop where it is safe when asked to; on a terminal also a bar with rate and time left."""
    from rich.console import Console

    def stop_if_asked(done: int, _: int) -> None:
        if done:
            _signals.worth_waiting()
        _signals.check()

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield stop_if_asked
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            if not task.completed:
                return Text(starting)
            return Text("" if speed is None else f"{_short(speed)} {unit}/s")

    # Drawn from here and not from a thread: worker processes are forked from this one.
    columns = (BarColumn(), TaskProgressColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, auto_refresh=False) as bar:
        task, drawn = bar.add_task("", total=None), 0.0

        def report(done: int, total: int) -> None:
            nonlocal drawn
            stop_if_asked(done, total)
            if time.monotonic() - drawn >= REFRESH:
                bar.update(task, completed=done, total=total, refresh=True)
                drawn = time.monotonic()

        yield report


def _short(rate: float) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g}"


def plus_minus(half_width: float) -> str:
    """The half-width of an interval for people."""
    return f"± {show(half_width, 2)}"


def percent(share: float | None) -> str:
    """A share for people."""
    return "–" if share is None else f"{100.0 * share:.4g} %"


def percent_between(share: Estimate | None) -> str:
    """A share with its interval for people."""
    return "–" if share is None else f"{percent(share.mean)} ± {show(100.0 * share.half_width, 2)}"


def label(result: Result) -> str:
    """What must stand beside the numbers of a run that is not simply complete."""
    from malleable.results import Status

    return "" if result.status == Status.COMPLETE else f" [{result.status}]"


def print_notes(result: Result, before: str = "") -> None:
    """What to know before trusting the numbers."""
    out = console()
    for note in result.notes:
        out.print(f"note: {before}{note}")


def deliver(print_it: Callable[[], None], save: Callable[[], Path] | None, *, quiet: bool) -> None:
    """Print what was found, then save it: neither is lost because the other cannot be done."""
    try:
        print_it()
        sys.stdout.flush()
    finally:
        saved = None if save is None else save()
    if saved is not None and not quiet:
        console().print(f"saved to {saved}", soft_wrap=True)


def finish(*, interrupted: bool) -> None:
    """Exit as shells expect after Ctrl-C."""
    if interrupted or _signals.received():
        say("interrupted: these are the numbers so far" if interrupted else "interrupted")
        raise typer.Exit(_signals.status())
