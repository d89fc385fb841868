"""`malleable workload`: a stochastic workload fitted to a log."""

from __future__ import annotations

from typing import Annotated

import typer

from malleable.cli._logs import (
    ChooseOption,
    ClassesOption,
    DurationOption,
    EstimatesOption,
    FormatOption,
    LogArgument,
    LogCoresOption,
    MalleableOption,
    MoldableOption,
    PauseOption,
    SpeedupOption,
    StudyLoadOption,
    StudySeedOption,
    changes,
    read_cores,
)
from malleable.cli._running import progress_bar
from malleable.cli._shared import JsonOption, PolicyOption, console, print_json, whole


def command(
    file: LogArgument,
    cores: LogCoresOption = None,
    policy: PolicyOption = "wham",
    jobs: Annotated[str, typer.Option("--jobs", metavar="M", help="Jobs to simulate.")] = "200000",
    format: FormatOption = None,  # noqa: A002 - the option's name
    classes: ClassesOption = None,
    speedup: SpeedupOption = None,
    malleable: MalleableOption = None,
    moldable: MoldableOption = None,
    choose: ChooseOption = None,
    seed: StudySeedOption = None,
    load: StudyLoadOption = None,
    duration: DurationOption = None,
    estimates: EstimatesOption = None,
    pause: PauseOption = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write the workload file here, not to stdout.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A stochastic workload fitted to a log, and how well it stands for it: simulated against replayed."""
    from malleable import api
    from malleable.results import files

    options = changes(
        format=format, classes=classes, speedup=speedup, malleable=malleable, moldable=moldable,
        choose=choose, seed=seed, load=load, duration=duration, estimates=estimates, pause=pause,
    )  # fmt: skip
    count = whole(jobs, "jobs", "200000")
    with progress_bar() as progress:
        found = api.fit_workload(file, read_cores(cores), policy, jobs=count, progress=progress, **options)
    if out is not None:
        from pathlib import Path

        files.put(Path(out), found.workload.to_toml().encode())
    if as_json:
        print_json(found.to_dict())
        return
    screen = console()
    if out is None:
        screen.print(found.workload.to_toml(), soft_wrap=True, end="")
    screen.print(f"# {found.words}", soft_wrap=True)
    if out is not None:
        screen.print(f"written to {out}", soft_wrap=True)
