"""`malleable allocate`: who gets how many cores, now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._shared import (
    CoresOption,
    JsonOption,
    LoadOption,
    PolicyOption,
    WorkloadArgument,
    console,
    print_json,
    scaled_workload,
    show,
    table,
)

if TYPE_CHECKING:
    from malleable.contracts import Allocation
    from malleable.jobs import Jobs

MOST_ROWS = 50
"""Beyond this many jobs people get the table by class only; --json has them all."""


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
    from malleable.contracts import Policy
    from malleable.job_files import parse_jobs, read_jobs

    described, n = scaled_workload(workload, cores, load)
    if jobs == "-":
        # Some programs mark UTF-8 with an invisible first character; read_jobs drops it too.
        present = parse_jobs(described, sys.stdin.read().removeprefix("\ufeff"))
    else:
        present = read_jobs(described, jobs)
    result = Policy.of(policy).allocate(present, n, integer=integer)
    if as_json:
        print_json(_document(policy, n, present, result))
    else:
        _print(policy, n, present, result)


def _document(policy: str, cores: float, jobs: Jobs, result: Allocation) -> dict[str, object]:
    names = jobs.workload.class_names
    rows = zip(jobs.ids, jobs.class_index.tolist(), result.cores.tolist(), strict=True)
    allocation = [{"id": job, "class": names[i], "cores": k} for job, i, k in rows]
    return {"policy": policy, "cores": cores, "price": result.price, "allocation": allocation}


def _print(policy: str, cores: float, jobs: Jobs, result: Allocation) -> None:
    out, names = console(), jobs.workload.class_names
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
