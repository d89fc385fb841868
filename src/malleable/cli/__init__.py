"""The command line: each verb parses, calls one library function, and prints. No logic lives here.

Tables for people go to stdout, or one JSON document with `--json`; progress, warnings and errors go to
stderr. Exit status 0 good, 1 an error of ours (one line and a hint), 2 usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from malleable import __version__
from malleable.cli import allocate, bound, compare, list_kinds, meanfield, paper, simulate
from malleable.errors import MalleableError, PolicyRaisedError


class _Verbs(TyperGroup):
    """The verbs; a reader that goes away (head, less) has seen enough, and nothing is wrong."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout again when it ends, so give it one that takes everything.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None
        return result


app = typer.Typer(
    name="malleable",
    cls=_Verbs,
    help="n cores, many jobs, each able to run on any number of cores: who gets how many, now?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("bound")(bound.command)
app.command("allocate")(allocate.command)
app.command("meanfield")(meanfield.command)
app.command("simulate")(simulate.command)
app.command("compare")(compare.command)
app.command("paper")(paper.command)
app.command("list")(list_kinds.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"malleable {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"warning: {message}", err=True)


def main() -> None:
    """Run the command line; errors of ours become one line and a hint."""
    warnings.showwarning = _show_warning
    try:
        app()
    except MalleableError as error:
        if isinstance(error, PolicyRaisedError):
            typer.echo(error.trace, err=True, nl=False)
        typer.echo(f"error: {error.sentence}", err=True)
        if error.hint:
            typer.echo(f"hint: {error.hint}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
