"""`malleable submit`: a program for the broker to run."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from malleable.cli import _signals
from malleable.cli._live import LOOK_SECONDS, broker, bytes_of, write_bytes
from malleable.cli._shared import JsonOption, number, print_json, say, whole
from malleable.cli._streams import silence

if TYPE_CHECKING:
    from malleable.live.api import Parent

FIRST_WHY, LONGEST_WHY = 2.0, 60.0
"""Seconds between two looks at why a program is not started; thousands may wait."""


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
        "command": [*map(_utf8, program)],
        "folder": _utf8(os.getcwd()),  # noqa: PTH109 - as it is: links stay links
        "environment": {_utf8(name): _utf8(value) for name, value in os.environ.items()},
        "class": job_class,
        "size": None if size is None else number(size, "size"),
        "units": None if units is None else number(units, "units"),
        "weight": None if weight is None else number(weight, "weight"),
        "memory": 0.0 if memory is None else bytes_of(memory),
        "never_pause": never_pause,
        "max_cores": None if max_cores is None else whole(max_cores, "max-cores", "4"),
        "on_resize": None if on_resize is None else _utf8(on_resize),
    }
    from malleable.live.api import is_left_unread, offered, parent

    if wait and (inside := parent()):
        _run_inside(inside, program, quiet=as_json)
    stdin = _stdin()
    with broker() as client:
        if wait and stdin is not None:
            given.update(offered(stdin))
        job = client.submit({key: value for key, value in given.items() if value is not None})
        if not wait:
            print_json({"id": job}) if as_json else typer.echo(job)
            if stdin is not None and is_left_unread(stdin):
                say(f"job {job} does not read standard input: --wait passes it on")
            return
    _wait(job, quiet=as_json)


def _stdin() -> int | None:
    """The file that standard input is, if there is one."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # it was closed, or is no file
        return None


def _utf8(word: str) -> str:
    """A word with the bytes that it has in this locale, which other processes read as UTF-8."""
    return os.fsencode(word).decode("utf-8", "surrogateescape")


def _run_inside(inside: Parent, program: list[str], *, quiet: bool) -> NoReturn:
    """Run a program as a part of the one that waits for it, and exit with its status."""
    from malleable.live.api import exit_status

    say(f"this is a part of job {inside.job}, which waits for it, and runs on the cores of that")
    if not quiet:
        inside.become(program)
    ended = inside.run(program)
    print_json(ended)
    raise typer.Exit(exit_status(ended))


def _wait(job: str, *, quiet: bool) -> None:
    """Show what a program prints until it has ended, and exit with its status."""
    from malleable.live.api import at_the_end, exit_status, follow

    closed = threading.Event()

    def show(name: Any, stream: Any) -> None:
        try:
            for block in follow(job, name):
                if not quiet:
                    write_bytes(stream, block)
        except BrokenPipeError:  # a command would end now, too
            silence(stream)
            closed.set()

    _signals.worth_waiting()
    outputs = {"out": sys.stdout, "err": sys.stderr}
    threads = [threading.Thread(target=show, args=each, daemon=True) for each in outputs.items()]
    for thread in (*threads, threading.Thread(target=_tell_why_it_waits, args=(job,), daemon=True)):
        thread.start()
    cancelled = False
    while any(thread.is_alive() for thread in threads):
        if (_signals.received() or closed.is_set()) and not cancelled:
            cancelled = True
            _give_up(job)
        threads[0].join(LOOK_SECONDS) if threads[0].is_alive() else threads[1].join(LOOK_SECONDS)
    ended = at_the_end(job)
    if quiet:
        print_json(ended)
    if not cancelled:
        raise typer.Exit(exit_status(ended))
    raise typer.Exit(_signals.status() if _signals.received() else 128 + signal.SIGPIPE)


def _tell_why_it_waits(job: str) -> None:
    """Say why a program is not started, where it is not for want of cores."""
    from malleable.errors import MalleableError

    told, pause = "", FIRST_WHY
    while True:
        time.sleep(pause)
        pause = min(2.0 * pause, LONGEST_WHY)
        with suppress(MalleableError), broker() as client:
            found = client.job(job)
            if found["state"] != "queued":
                return
            reason = found.get("reason") or ""
            if reason not in {"", told}:
                say(f"job {job} waits: {reason}")
            told = reason


def _give_up(job: str) -> None:
    """A signal: the program is to end, unless it is only the terminal that was closed."""
    from malleable.live.api import NoBrokerError

    if _signals.received() and _signals.status() == 128 + signal.SIGHUP:
        raise KeyboardInterrupt
    say(f"cancelling job {job}")
    try:
        with broker() as client:
            client.cancel(job)
    except NoBrokerError as error:
        say(f"{error.sentence}: job {job} goes on")
        raise KeyboardInterrupt from None
