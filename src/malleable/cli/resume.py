"""`malleable resume`: let jobs go on that are on hold."""

from __future__ import annotations

from typing import Annotated

import typer

from malleable.cli._live import broker, say_each
from malleable.cli._shared import JsonOption  # noqa: TC001 - typer reads it


def command(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB…", help="Names of jobs, as `status` shows them.")],
    as_json: JsonOption = False,
) -> None:
    """Let jobs have cores again that are on hold."""
    with broker() as client:
        say_each(client.hold_each(jobs, on_hold=False), "resumed", as_json=as_json)
