"""`malleable set`: change what a job is worth, or what the machine has."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from malleable.cli._live import broker
from malleable.cli._shared import JsonOption, number, print_json, show, whole


def command(
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="A job; without one, the machine is changed.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="W", help="What a second of the job's presence costs.")
    ] = None,
    job_class: Annotated[str | None, typer.Option("--class", metavar="C", help="The job's class.")] = None,
    cores: Annotated[
        str | None, typer.Option("--cores", "-n", metavar="N", help="Cores that the machine has for jobs.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="P", help="The policy that divides them.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Change the weight or class of a job, or the cores and the policy of the machine."""
    from malleable.errors import ParameterError

    ours = {"weight": None if weight is None else number(weight, "weight"), "class": job_class}
    machines = {"cores": None if cores is None else whole(cores, "cores", "4"), "policy": policy}
    wanted, others = (machines, ours) if job is None else (ours, machines)
    change: dict[str, Any] = {key: value for key, value in wanted.items() if value is not None}
    if not change or any(value is not None for value in others.values()):
        raise ParameterError(
            "there is nothing to change, or too much at once",
            "set JOB --weight W --class C, or set --cores N --policy P",
        )
    with broker() as client:
        found = client.change_machine(change) if job is None else client.change_job(job, change)
    if as_json:
        print_json(found)
    elif job is None:
        typer.echo(f"{found['cores']} cores, {found['policy']}")
    else:
        typer.echo(f"job {found['id']}: class {found['class']}, weight {show(found['weight'])}")
