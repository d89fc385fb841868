"""Run the command line as a user does, but in this process where that is possible: it is much faster."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import pty
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import typer.main

from malleable.cli import _signals, main

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
"""A terminal of 80 columns without colours, whatever the tests run in."""
COLOURFUL = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH", "LINES")
FROM_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""What `make test` leaves to builds that tests start: they would say where they are, and share its tokens."""
PATIENCE = 60.0
"""Seconds after which a test gives up; nothing is judged by how long it takes."""

COMMANDS = functools.cache(typer.main.get_command)
"""Typer reads the signatures of all verbs at each call: most of the time of a command that is refused."""


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


def environment() -> dict[str, str]:
    """The environment of a plain terminal in which `malleable` and `python` are those of the tests."""
    kept = {key: value for key, value in os.environ.items() if key not in {*COLOURFUL, *FROM_MAKE}}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, **PLAIN, "PATH": path, "PYTHONIOENCODING": "utf-8"}


def malleable(*arguments: str, stdin: str = "") -> Outcome:
    """Run `malleable ARGUMENTS` in this process, through its real entry point."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["malleable", *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        mock.patch.dict(os.environ, environment(), clear=True),
        mock.patch.object(typer.main, "get_command", COMMANDS),
        # Who stops the tests stops them, and not this process on the spot.
        mock.patch.object(_signals, "listen"),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("default")
        status = _status(main)
    return Outcome(status, out.getvalue(), err.getvalue())


def _status(entry_point: object) -> int:
    try:
        entry_point()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def shell(line: str, stdin: str = "", *, folder: Path | None = None) -> Outcome:
    """Run a line of shell in another process."""
    done = subprocess.run(
        ["bash", "-c", line],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        cwd=folder,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def shown_on_terminal(start: Callable[[int], subprocess.Popen]) -> str:
    """What a process shows on a terminal, whose end `start` hands to it; it must succeed."""
    ours, theirs = pty.openpty()
    process = start(theirs)
    os.close(theirs)
    shown = b""
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    try:
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        limit.cancel()
    return shown.decode()
