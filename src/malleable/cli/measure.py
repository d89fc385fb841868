"""`malleable measure`: how much faster a command runs on more cores."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli import _signals
from malleable.cli._running import deliver, finish, percent, progress_bar
from malleable.cli._shared import JsonOption, console, print_json, show, table, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.fitting import Measured


def command(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND",
            help="The command, behind --; {cores} in it becomes the number of cores.",
        ),
    ],
    cores: Annotated[
        str, typer.Option("--cores", "-n", metavar="A,B,…", help="Numbers of cores, such as 1,2,4,8.")
    ],
    repeat: Annotated[str, typer.Option("--repeat", metavar="R", help="Runs on each number of cores.")] = "5",
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Where run times go; what is there is replaced.")
    ] = "measurements.csv",
    as_json: JsonOption = False,
) -> None:
    """Run times and speedup of a command, bound to several numbers of cores of this machine."""
    from malleable import api

    widths = [whole(entry, "cores", "1,2,4") for entry in cores.split(",")]
    times = whole(repeat, "repeat", "5")
    # From here on a signal must end the command too, and not this process alone.
    _signals.worth_waiting()
    with progress_bar("runs", "first run") as bar:
        found = api.measure(
            program, widths, repeat=times, out=out, progress=_seldom(bar), group=_signals.end_with_us
        )
    # The file was written run by run.
    deliver(
        lambda: print_json(found.to_dict()) if as_json else _print(found),
        lambda: Path(out),
        quiet=as_json,
    )
    finish(interrupted=found.interrupted)


def _seldom(draw: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Draw when a run ends, and look for signals in between: drawing would take time from the command."""
    drawn = -1

    def report(done: int, total: int) -> None:
        nonlocal drawn
        _signals.check()
        if done != drawn:
            draw(done, total)
            drawn = done

    return report


def _print(found: Measured) -> None:
    out = console()
    title = shlex.join(found.command) + (" [interrupted]" if found.interrupted else "")
    rows = table(
        title, "cores", "runs", "time", "fastest", "slowest", "speedup", "lowest", "highest", "efficiency",
        words=0,
    )  # fmt: skip
    for point in found.points:
        times = (show(point[key], 4) for key in ("time", "fastest", "slowest"))
        speeds = (show(point[key], 4) for key in ("speedup", "low", "high"))
        rows.add_row(f"{point['cores']}", str(point["runs"]), *times, *speeds, percent(point["efficiency"]))
    out.print(rows)
    for note in found.notes:
        out.print(f"note: {note}", soft_wrap=True)
    if found.fit is not None:
        out.print(f"{found.fit.family} ({found.fit.criterion}):", soft_wrap=True)
        out.print(found.fit.line, soft_wrap=True)
