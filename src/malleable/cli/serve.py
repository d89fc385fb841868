"""`malleable serve`: the broker of this machine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._live import bytes_of
from malleable.cli._shared import PolicyOption, number, whole

if TYPE_CHECKING:
    from malleable.live.broker.server.run import Place


def command(
    cores: Annotated[
        str | None,
        typer.Option("--cores", "-n", metavar="N", help="Cores to divide; by default all."),
    ] = None,
    policy: PolicyOption = "clearing",
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload", metavar="WORKLOAD", help="Classes of jobs: a built-in name or a TOML file."
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Memory for all jobs, such as 64G; all there is otherwise."
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(
            "--port", metavar="P", help="Also listen on this port of 127.0.0.1, 0 for any: the page."
        ),
    ] = None,
    paused_at_most: Annotated[
        str | None,
        typer.Option(
            "--paused-at-most",
            metavar="K",
            help="Start no job while that would leave more than K started ones without cores; 4 per core.",
        ),
    ] = None,
    grace: Annotated[
        str,
        typer.Option(
            "--grace", metavar="S", help="Seconds after a start in which cores of earlier clients are kept."
        ),
    ] = "2",
    guarantee: Annotated[
        str,
        typer.Option(
            "--guarantee",
            metavar="K",
            help="Every job does at least 1/K of what it would do with its weighted equal share; 2 or more.",
        ),
    ] = "2",
    longest_pause: Annotated[
        str,
        typer.Option(
            "--longest-pause",
            metavar="S",
            help="Seconds after which a job that waits without cores gets some for a moment.",
        ),
    ] = "60",
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="K",
            help="Outputs of ended programs to keep: so many, of so many days, whichever is more, or all.",
        ),
    ] = "1000,30d",
    most_output: Annotated[
        str,
        typer.Option(
            "--most-output",
            metavar="SIZE",
            help="Bytes to keep of each stream that a program prints to, its beginning and its end; or all.",
        ),
    ] = "1G",
    log_file: Annotated[
        str | None,
        typer.Option("--log-file", metavar="FILE", help="Where the log goes; to standard error otherwise."),
    ] = None,
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level", metavar="L", help="The least that is logged: debug, info, warning, error."
        ),
    ] = "info",
    no_bind: Annotated[
        bool,
        typer.Option("--no-bind", help="Bind jobs to no CPUs; N may be larger than there are."),
    ] = False,
) -> None:
    """Run the broker of this machine, until Ctrl-C; programs that were submitted go on without it."""
    from malleable.live import api

    api.serve(
        keep,
        _say_where,
        cores=None if cores is None else whole(cores, "cores", "4"),
        policy=policy,
        workload=workload,
        memory=None if memory is None else bytes_of(memory),
        port=None if port is None else whole(port, "port", "8008"),
        bind=not no_bind,
        paused_at_most=None if paused_at_most is None else whole(paused_at_most, "paused-at-most", "8"),
        grace=number(grace, "grace"),
        guarantee=number(guarantee, "guarantee"),
        longest_pause=number(longest_pause, "longest-pause"),
        most_output=math.inf if most_output == "all" else bytes_of(most_output, "most-output", "1G"),
        log_file=log_file,
        log_level=log_level,
    )


def _say_where(place: Place) -> None:
    """One line, for people and for scripts that wait for it."""
    line = f"dividing {place.cores} cores by {place.policy} at {place.socket}"
    if place.port is not None:
        line += f" and http://127.0.0.1:{place.port}/ (token in {place.token})"
    typer.echo(line)
