"""`malleable logs`: what a program has printed."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from malleable.cli._live import JobArgument, attentively, broker, write_bytes


def command(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it has ended.")] = False,
    errors: Annotated[bool, typer.Option("--err", help="Its stderr, in place of its stdout.")] = False,
) -> None:
    """What a submitted program has printed, while it runs and afterwards."""
    stream: Literal["out", "err"] = "err" if errors else "out"
    with broker() as client:
        client.job(job)
        if not follow:
            for block in client.log(job, stream):
                write_bytes(sys.stdout, block)
            return
    from malleable.live.api import follow as following

    for block in attentively(following(job, stream)):
        write_bytes(sys.stdout, block)
