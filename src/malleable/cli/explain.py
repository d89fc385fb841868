"""`malleable explain`: why does this job have three cores, and who is next?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._shared import (
    CoresOption,
    JsonOption,
    LoadOption,
    PlotOption,
    PolicyOption,
    ReportOption,
    WorkloadArgument,
    console,
    deliver_files,
    print_json,
    scale,
    table,
)

if TYPE_CHECKING:
    from malleable.planning import Explanation

MOST_ROWS = 50
"""Beyond this many jobs people get those with the most cores only; --json has them all."""
MOST_REASONS = 10
"""Beyond this many jobs their reasons stand in --json only, but for that of --job."""


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
    job: Annotated[
        str | None, typer.Option("--job", metavar="ID", help="The job to say most about; what if it left?")
    ] = None,
    arrives: Annotated[
        str | None,
        typer.Option("--arrives", metavar="ROW", help="What if this came: class=etl,remaining=2[,weight=1]."),
    ] = None,
    policy: PolicyOption = "wham",
    load: LoadOption = None,
    integer: Annotated[bool, typer.Option("--integer", help="Whole cores only.")] = False,
    plot: PlotOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Why each job has its cores, what a core is worth to it, and who gets the next."""
    from malleable import api
    from malleable.errors import ParameterError

    if workload == jobs == "-":
        raise ParameterError(
            "WORKLOAD and --jobs cannot both be read from standard input", "give one of them as a file"
        )
    n, rho = scale(cores, load)
    described = api.read_workload(workload, n, rho)
    found = api.explain(
        described, api.read_jobs(described, jobs), n, policy, job=job, arriving=arrives, integer=integer
    )
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, reasons=job is None)
    deliver_files(found, plot, report, quiet=as_json)


def _print(found: Explanation, *, reasons: bool) -> None:
    out = console()
    for sentence in found.words:
        out.print(sentence)
    if reasons and len(found.jobs) <= MOST_REASONS:
        for job in found.jobs:
            out.print(f"{job.id} {job.why}.")
    if not found.jobs:
        return
    headings, rows = found.table()
    made = table("", *headings, words=2)
    widest = sorted(range(len(rows)), key=lambda j: -found.jobs[j].cores)[:MOST_ROWS]
    for j in sorted(widest):
        made.add_row(*rows[j])
    out.print(made)
    if len(rows) > MOST_ROWS:
        out.print(f"and {len(rows) - MOST_ROWS} jobs with fewer cores; --json has them all")
