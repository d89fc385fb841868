"""The verbs, and how a command ends."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from malleable import __version__
from malleable.cli import (
    _signals,
    _streams,
    allocate,
    bound,
    cancel,
    compare,
    drain,
    fit,
    list_kinds,
    logs,
    meanfield,
    measure,
    paper,
    play,
    serve,
    set_values,
    simulate,
    status,
    submit,
    watch,
)
from malleable.cli._shared import say
from malleable.errors import MalleableError


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
app.command("play")(play.command)
app.command("measure")(measure.command)
app.command("fit")(fit.command)
app.command("paper")(paper.command)
app.command("serve")(serve.command)
app.command("submit")(submit.command)
app.command("status")(status.command)
app.command("watch")(watch.command)
app.command("logs")(logs.command)
app.command("cancel")(cancel.command)
app.command("set")(set_values.command)
app.command("drain")(drain.command)
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
    say(f"warning: {message}")


def run() -> None:
    """Carry out the command; errors of ours become one line and a hint."""
    warnings.showwarning = _show_warning
    try:
        app(prog_name="malleable")
    except MalleableError as error:
        trace = getattr(error, "trace", "")
        if trace:  # code that is not ours raised it: a policy of a user's, an experiment
            say(trace.rstrip("\n"))
        say(f"error: {error.sentence}")
        if error.hint:
            say(f"hint: {error.hint}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(_signals.status())
    except OSError as error:
        # Files that the library opens have names, and errors of ours; what is left are the standard streams.
        if error.filename is not None:
            raise
        _streams.silence(sys.stdout)
        say(f"error: cannot write the output: {error.strerror or os.strerror(error.errno or 0)}")
        sys.exit(_signals.status() if _signals.received() else 1)
