"""`malleable watch`: the jobs in a table that moves."""

from __future__ import annotations

from malleable.cli._live import attentively, broker, job_table
from malleable.cli._shared import console, say


def command() -> None:
    """Watch the jobs in a table that changes as they do; Ctrl-C ends it."""
    from rich.live import Live

    from malleable.errors import ExecutionError

    out = console()
    if not out.is_terminal:
        raise ExecutionError("a table that moves needs a terminal", "use `malleable status`")
    with broker() as client, Live(console=out, auto_refresh=False, screen=True) as picture:
        try:
            for status in attentively(client.events()):
                picture.update(job_table(status, status["jobs"]), refresh=True)
        except KeyboardInterrupt:
            return
    say("the broker has ended")
