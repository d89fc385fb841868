"""`malleable status`: who has how many cores, now."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from malleable.cli._live import broker, job_table
from malleable.cli._shared import JsonOption, console, print_json, show, table, whole


def command(
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="Only this job, with all that is known.")
    ] = None,
    ended: Annotated[
        str, typer.Option("--ended", metavar="K", help="Also the last K programs that have ended.")
    ] = "5",
    as_json: JsonOption = False,
) -> None:
    """Who has how many cores, now: the machine, its jobs, and the last programs that have ended."""
    last = whole(ended, "ended", "5")
    with broker() as client:
        if job is not None:
            found = client.job(job)
            print_json(found) if as_json else _print(found)
            return
        machine, jobs = client.status(), client.jobs(last)
    if as_json:
        print_json({**machine, "jobs": jobs})
    else:
        console().print(job_table(machine, jobs))


def _print(found: dict[str, Any]) -> None:
    rows = table(f"job {found['id']}", "", "", words=2)
    for key, value in found.items():
        if value is not None and key != "id":
            rows.add_row(key, shlex.join(value) if key == "command" else _shown(value))
    console().print(rows)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return show(value, 12) if isinstance(value, float) else str(value)
