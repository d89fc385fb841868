"""`malleable cancel`: have jobs end."""

from __future__ import annotations

from typing import Annotated

import typer

from malleable.cli._live import broker, say_each
from malleable.cli._shared import JsonOption  # noqa: TC001 - typer reads it


def command(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB…", help="Names of jobs, as `status` shows them.")],
    as_json: JsonOption = False,
) -> None:
    """Ask jobs to end: programs with all that they started (SIGTERM, then SIGKILL), clients as they will."""
    with broker() as client:
        say_each(client.cancel_each(jobs), "cancelling", as_json=as_json)
