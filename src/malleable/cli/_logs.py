"""What `trace`, `workload` and `replay` share: the log, and what is assumed of its jobs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from malleable.cli._shared import console, number, whole

LogArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A log (plain, gzip, zstd or Parquet), a study of one, or - for stdin."
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="F", help="The format of the log; found by content otherwise."),
]
LogCoresOption = Annotated[
    str | None,
    typer.Option("--cores", "-n", metavar="N", help="Number of cores; otherwise what the log says."),
]
ClassesOption = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="C",
        help="Classes by user, group, application, queue, width or length; or none.",
    ),
]
SpeedupOption = Annotated[
    str | None,
    typer.Option(
        "--speedup",
        metavar="S",
        help="How jobs speed up: amdahl:sequential=0.05, a file of measurements, or a folder of them.",
    ),
]
MalleableOption = Annotated[
    str | None,
    typer.Option("--malleable", metavar="P", help="Percentage of the jobs that are malleable."),
]
MoldableOption = Annotated[
    str | None,
    typer.Option("--moldable", metavar="P", help="Percentage of the jobs that are moldable."),
]
ChooseOption = Annotated[
    str | None,
    typer.Option("--choose", metavar="WHO", help="Who is malleable first: jobs, users, widest or longest."),
]
StudySeedOption = Annotated[
    str | None, typer.Option("--seed", metavar="S", help="Seed of what is drawn: shares, resampled logs.")
]
StudyLoadOption = Annotated[
    str | None,
    typer.Option("--load", metavar="R", help="Move arrivals closer together or apart, to this load."),
]
DurationOption = Annotated[
    str | None,
    typer.Option("--duration", metavar="T", help="Run times for a log without: seconds, or estimates."),
]
EstimatesOption = Annotated[
    str | None,
    typer.Option("--estimates", metavar="E", help="What batch policies are told: log, or truth."),
]
PauseOption = Annotated[
    str | None,
    typer.Option("--pause", metavar="T", help="Seconds without progress at every resize."),
]


def changes(
    *,
    format: str | None,  # noqa: A002 - the option's name
    classes: str | None,
    speedup: str | None,
    malleable: str | None,
    moldable: str | None,
    choose: str | None,
    seed: str | None,
    load: str | None,
    duration: str | None,
    estimates: str | None,
    pause: str | None,
) -> dict[str, Any]:
    """The keys of a study that were given, read; the library checks them."""
    durations: str | float | None = duration
    if duration is not None and duration != "estimates":
        durations = number(duration, "duration")
    return {
        "format": format,
        "classes": classes,
        "speedup": speedup,
        "malleable": _share(malleable, "malleable"),
        "moldable": _share(moldable, "moldable"),
        "choose": choose,
        "seed": None if seed is None else whole(seed, "seed", "0"),
        "load": None if load is None else number(load, "load"),
        "durations": durations,
        "estimates": estimates,
        "pause": None if pause is None else number(pause, "pause"),
    }


def _share(text: str | None, name: str) -> float | None:
    """A percentage as a share."""
    from malleable.errors import ParameterError

    if text is None:
        return None
    value = number(text.removesuffix("%"), name)
    if not 0.0 <= value <= 100.0:
        raise ParameterError(f"{name} must be from 0 to 100 %, got {text!r}", f"for example --{name} 50")
    return value / 100.0


def read_cores(text: str | None) -> float | None:
    """The number of cores, if it was given."""
    return None if text is None else number(text, "cores")


def span(seconds: float) -> str:
    """A length of time for people."""
    for unit, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def say_assumptions(assumptions: tuple[str, ...]) -> None:
    """What was taken for granted, one line each."""
    out = console()
    out.print("Assumed:")
    for one in assumptions:
        out.print(f"  - {one}", soft_wrap=True)
