"""`malleable drain`: let what runs end, and start nothing new."""

from __future__ import annotations

from typing import Annotated

import typer

from malleable.cli._live import attentively, broker
from malleable.cli._shared import JsonOption, print_json


def command(
    wait: Annotated[bool, typer.Option("--wait", help="Return when no program runs any more.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Accept and start no program from now on; what runs goes on to its end."""
    from malleable.errors import ExecutionError

    with broker() as client:
        found = client.drain()
        if wait:
            for status in attentively(client.events(most=0)):
                if status["draining"] and not status["programs"]:
                    break
            else:
                raise ExecutionError("the broker has ended", "programs that run go on")
    if as_json:
        print_json(found)
    else:
        typer.echo("drained: no program runs" if wait else "draining: no program starts from now on")
