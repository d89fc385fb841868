"""`malleable cancel`: have jobs end."""

from __future__ import annotations

from typing import Annotated

import typer

from malleable.cli._live import broker
from malleable.cli._shared import JsonOption, print_json, say_error


def command(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB…", help="Names of jobs, as `status` shows them.")],
    as_json: JsonOption = False,
) -> None:
    """Ask jobs to end: programs with all that they started (SIGTERM, then SIGKILL), clients as they will."""
    with broker() as client:
        asked = client.cancel_each(jobs)
    if as_json:
        print_json(asked)
    for one in asked:
        if "error" in one:
            say_error(one["error"], one["hint"])
        elif not as_json:
            typer.echo(f"cancelling {one['id']}")
    if any("error" in one for one in asked):
        raise typer.Exit(1)
