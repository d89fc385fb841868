"""The verbs, and how a command ends."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from malleable import __version__
from malleable.cli import _signals, _streams
from malleable.cli._shared import say, say_error
from malleable.errors import MalleableError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    "bound", "plan", "allocate", "explain", "meanfield", "simulate", "compare", "play", "measure", "fit",
    "trace", "workload", "replay", "paper",
    "serve", "submit", "status", "watch", "logs", "cancel", "hold", "resume", "set", "drain", "list",
)  # fmt: skip
"""The commands, in the order of the help."""
MODULES = {"set": "set_values", "list": "list_kinds"}
"""Of those that Python has other uses for."""


class _Verbs(TyperGroup):
    """The verbs; a reader that goes away (head, less) has seen enough, and nothing is wrong."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _streams.silence(sys.stdout)
            raise typer.Exit(_signals.status() if _signals.received() else 0) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(_signals.status()) from None
        return result


def make_app(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The application with some of its verbs; only their modules are imported."""
    app = typer.Typer(
        name="malleable",
        cls=_Verbs,
        help="Decide how many cores each running job should get, and how close that is to the best possible.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for verb in verbs:
        module = importlib.import_module(f"malleable.cli.{MODULES.get(verb, verb)}")
        app.command(verb)(module.command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"malleable {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {message}")


def run() -> None:
    """Carry out the command; errors become one line and a hint."""
    warnings.showwarning = _show_warning
    asked = sys.argv[1:2]
    try:
        make_app(asked if set(asked) & set(VERBS) else VERBS)(prog_name="malleable")
    except MalleableError as error:
        trace = getattr(error, "trace", "")
        if trace:  # code that is not ours raised it: a policy of a user's, an experiment
            say(trace.rstrip("\n"))
        say_error(error.sentence, error.hint)
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(_signals.status())
    except OSError as error:
        # Errors about files that the library opens name them; what is left are the standard streams.
        if error.filename is not None:
            raise
        _streams.silence(sys.stdout)
        say(f"error: cannot write the output: {error.strerror or os.strerror(error.errno or 0)}")
        sys.exit(_signals.status() if _signals.received() else 1)
