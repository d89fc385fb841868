"""The command line: each verb parses, calls one library function, and prints. No logic lives here.

Tables for people go to stdout, or one JSON document with `--json`; progress, warnings and errors go to
stderr. Exit status 0 good, 1 an error (one line and a hint), 2 usage, 130 interrupted (143 and 129 by
SIGTERM and SIGHUP).

This file is the entry point and imports next to nothing: whoever presses Ctrl-C while the rest is still being
imported gets one line, too.
"""

from __future__ import annotations

from malleable.cli import _signals, _streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Run the command line; errors become one line and a hint."""
    _streams.prepare()
    _signals.listen()
    try:
        from malleable.cli._verbs import run

        run()
    finally:
        _signals.ignore()


def __getattr__(name: str) -> Any:
    """The typer application, for those who look inside."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from malleable.cli._verbs import make_app

    return make_app()
