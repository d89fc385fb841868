"""`malleable allocate`: who gets how many cores, now."""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._shared import (
    CoresOption,
    JsonOption,
    LoadOption,
    PolicyOption,
    WorkloadArgument,
    console,
    scale,
    show,
    table,
)
from malleable.numerics.json_numbers import finite

if TYPE_CHECKING:
    from malleable.contracts import Allocation
    from malleable.model.jobs import Jobs

MOST_ROWS = 50
"""Beyond this many jobs people get the table by class only; --json has them all."""
STRETCH = 1 << 14
"""Rows that are written at a time."""


def command(
    workload: WorkloadArgument,
    cores: CoresOption,
    jobs: Annotated[
        str,
        typer.Option(
            "--jobs",
            metavar="FILE",
            help="CSV or JSON rows id, class, remaining[, weight, age, cores]; - for stdin.",
        ),
    ],
    policy: PolicyOption = "wham",
    load: LoadOption = None,
    integer: Annotated[bool, typer.Option("--integer", help="Whole cores only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Cores for each of the jobs present, under a policy."""
    from malleable import api
    from malleable.errors import ParameterError

    if workload == jobs == "-":
        raise ParameterError(
            "WORKLOAD and --jobs cannot both be read from standard input", "give one of them as a file"
        )
    n, rho = scale(cores, load)
    described = api.read_workload(workload, n, rho)
    present = api.read_jobs(described, jobs)
    result = api.allocate(described, present, n, policy, integer=integer)
    notes = api.policy_notes(described, n, policy) if len(present) else ()
    if as_json:
        _print_json(policy, n, present, result, notes)
    else:
        _print(policy, n, present, result)
        for note in notes:
            console().print(f"note: {note}", markup=False)


def _print_json(policy: str, cores: float, jobs: Jobs, result: Allocation, notes: tuple[str, ...]) -> None:
    """The document as `print_json` would write it, a stretch of rows at a time: it may be long."""
    noted = {"notes": list(notes)} if notes else {}
    head = {"policy": policy, "cores": cores, "price": result.price, **noted, "allocation": []}
    opening, closing = json.dumps(finite(head), indent=2).rsplit("]", 1)
    typer.echo(opening, nl=False)
    for start in range(0, len(jobs), STRETCH):
        typer.echo(("," if start else "") + ",".join(_rows(jobs, result, start)), nl=False)
    typer.echo(("\n  " if len(jobs) else "") + "]" + closing)


def _rows(jobs: Jobs, result: Allocation, start: int) -> list[str]:
    """Rows of the document from one position on."""
    some = slice(start, start + STRETCH)
    names = [json.dumps(name) for name in jobs.workload.class_names]
    rows = zip(jobs.ids[some], jobs.class_index[some].tolist(), result.cores[some].tolist(), strict=True)
    return [
        f'\n    {{\n      "id": {quoted(job)},\n      "class": {names[i]},\n      "cores": {k!r}\n    }}'
        for job, i, k in rows
    ]


def _print(policy: str, cores: float, jobs: Jobs, result: Allocation) -> None:
    out, names = console(), jobs.workload.class_names
    if len(jobs) == 0:
        out.print(f"{policy}: no jobs, so {cores:g} cores are idle", markup=False)
        return
    title = f"{policy}: {len(jobs)} jobs on {cores:g} cores"
    if len(jobs) <= MOST_ROWS:
        rows = table(title, "job", "class", "remaining", "cores", words=2)
        for job, i, x, k in zip(jobs.ids, jobs.class_index, jobs.remaining, result.cores, strict=True):
            rows.add_row(job, names[i], show(x), show(k) if k else "waits")
        out.print(rows)
    totals = table(
        "By class" if len(jobs) <= MOST_ROWS else title, "class", "jobs", "served", "cores", "widest"
    )
    for i, name in enumerate(names):
        mine = result.cores[jobs.class_index == i]
        if len(mine):
            totals.add_row(
                name, str(len(mine)), str(int((mine > 0).sum())), show(mine.sum()), show(mine.max())
            )
    totals.add_row("all", str(len(jobs)), str(int((result.cores > 0).sum())), show(result.cores.sum()), "")
    out.print(totals)
    if result.price is not None:
        out.print(f"price of a core: {show(result.price)}")
