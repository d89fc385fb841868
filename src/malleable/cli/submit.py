"""`malleable submit`: a program for the broker to run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated, Any

import typer

from malleable.cli import _signals
from malleable.cli._live import LOOK_SECONDS, broker, bytes_of, write_bytes
from malleable.cli._shared import JsonOption, number, print_json, say, whole


def command(
    program: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments, behind --.")
    ],
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--detach",
            help="Show its output and exit with its status (Ctrl-C cancels it), or return at once.",
        ),
    ] = False,
    job_class: Annotated[
        str | None, typer.Option("--class", metavar="C", help="Its class; program or build otherwise.")
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="S", help="Seconds that it takes on one core, if known.")
    ] = None,
    units: Annotated[
        str | None, typer.Option("--units", metavar="U", help="Units of progress that it has, if known.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="W", help="What a second of its presence costs.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Memory that it needs, such as 4G.")
    ] = None,
    max_cores: Annotated[
        str | None, typer.Option("--max-cores", metavar="K", help="The most cores that it takes.")
    ] = None,
    never_pause: Annotated[
        bool, typer.Option("--never-pause", help="Once started, it keeps at least one core.")
    ] = False,
    on_resize: Annotated[
        str | None,
        typer.Option(
            "--on-resize", metavar="R", help="A signal (USR1) or a command that tells it of a width."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a program or a build (make, ninja, cargo); it runs here, as wide as the policy says."""
    given: dict[str, Any] = {
        "command": program,
        "folder": os.getcwd(),  # noqa: PTH109 - as it is: links stay links
        "environment": dict(os.environ),
        "class": job_class,
        "size": None if size is None else number(size, "size"),
        "units": None if units is None else number(units, "units"),
        "weight": None if weight is None else number(weight, "weight"),
        "memory": 0.0 if memory is None else bytes_of(memory),
        "never_pause": never_pause,
        "max_cores": None if max_cores is None else whole(max_cores, "max-cores", "4"),
        "on_resize": on_resize,
    }
    with broker() as client:
        job = client.submit({key: value for key, value in given.items() if value is not None})
        if not wait:
            print_json({"id": job}) if as_json else typer.echo(job)
            return
    _wait(job, quiet=as_json)


def _wait(job: str, *, quiet: bool) -> None:
    """Show what a program prints until it has ended, and exit with its status."""
    from malleable.live.following import at_the_end, exit_status, follow

    def show(name: Any, stream: Any) -> None:
        for block in follow(job, name):
            if not quiet:
                write_bytes(stream, block)

    _signals.worth_waiting()
    outputs = {"out": sys.stdout, "err": sys.stderr}
    threads = [threading.Thread(target=show, args=each, daemon=True) for each in outputs.items()]
    for thread in threads:
        thread.start()
    cancelled = False
    while any(thread.is_alive() for thread in threads):
        if _signals.received() and not cancelled:
            cancelled = True
            _give_up(job)
        threads[0].join(LOOK_SECONDS) if threads[0].is_alive() else threads[1].join(LOOK_SECONDS)
    ended = at_the_end(job)
    if quiet:
        print_json(ended)
    raise typer.Exit(_signals.status() if cancelled else exit_status(ended))


def _give_up(job: str) -> None:
    """A signal: the program is to end, unless it is only the terminal that was closed."""
    from malleable.live.http_client import NoBrokerError

    if _signals.status() == 128 + signal.SIGHUP:
        raise KeyboardInterrupt
    say(f"cancelling job {job}")
    try:
        with broker() as client:
            client.cancel(job)
    except NoBrokerError:
        say(f"no broker runs: job {job} goes on")
        raise KeyboardInterrupt from None
