"""`malleable plan`: how many cores for this target, and what is one more worth?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._logs import (
    ChooseOption,
    ClassesOption,
    DurationOption,
    EstimatesOption,
    FormatOption,
    MalleableOption,
    MoldableOption,
    PauseOption,
    SpeedupOption,
    changes,
    say_assumptions,
)
from malleable.cli._running import (
    ConfidenceOption,
    SeedOption,
    WorkersOption,
    finish,
    progress_bar,
    read_workers,
)
from malleable.cli._shared import (
    JsonOption,
    LoadOption,
    PlotOption,
    ReportOption,
    console,
    deliver_files,
    number,
    print_json,
    table,
    whole,
)

if TYPE_CHECKING:
    from malleable.planning import Plan


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|LOG",
            help="A built-in workload (paper), a TOML file, or a log.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="T", help='"cost < 3", "p95(train) < 2h", "slowdown < 5" …'),
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="P[,Q…]", help="Of several, the one that needs the fewest cores."),
    ] = "wham",
    cores: Annotated[
        str | None, typer.Option("--cores", "-n", metavar="N", help="Cores that there are now.")
    ] = None,
    load: LoadOption = None,
    most: Annotated[
        str | None, typer.Option("--most", metavar="N", help="Look up to so many cores (1048576).")
    ] = None,
    core_price: Annotated[
        str | None, typer.Option("--core-price", metavar="P", help="Money per core-hour.")
    ] = None,
    job_price: Annotated[
        str | None,
        typer.Option("--job-price", metavar="P", help="Money per job-hour, in place of the holding costs."),
    ] = None,
    burst_price: Annotated[
        str | None,
        typer.Option("--burst-price", metavar="P", help="Money per hour of a rented core; of a log only."),
    ] = None,
    growth: Annotated[
        str | None, typer.Option("--growth", metavar="S", help="Also with so many more arrivals: 20%.")
    ] = None,
    add: Annotated[
        str | None, typer.Option("--add", metavar="WORKLOAD", help="Also with the classes of this workload.")
    ] = None,
    halve: Annotated[
        str | None,
        typer.Option("--halve", metavar="CLASS", help="Also with half the sequential part of this class."),
    ] = None,
    night: Annotated[
        str | None,
        typer.Option("--night", metavar="CLASS", help="Also with this class of a log at night only."),
    ] = None,
    make_malleable: Annotated[
        str | None,
        typer.Option("--make-malleable", metavar="S", help="Also with this share of jobs malleable: 20%."),
    ] = None,
    format: FormatOption = None,  # noqa: A002 - the option's name
    classes: ClassesOption = None,
    speedup: SpeedupOption = None,
    malleable: MalleableOption = None,
    moldable: MoldableOption = None,
    choose: ChooseOption = None,
    duration: DurationOption = None,
    estimates: EstimatesOption = None,
    pause: PauseOption = None,
    confidence: ConfidenceOption = "0.95",
    seed: SeedOption = "0",
    jobs: Annotated[
        str | None,
        typer.Option("--jobs", metavar="M", help="Jobs per replication of the shortest runs (40000)."),
    ] = None,
    workers: WorkersOption = None,
    plot: PlotOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """The fewest cores that meet a target, with a proof that fewer do not."""
    from malleable import api

    def read(text: str | None, name: str) -> float | None:
        return None if text is None else number(text, name)

    options: dict[str, Any] = {
        "cores": read(cores, "cores"),
        "load": read(load, "load"),
        "most": None if most is None else whole(most, "most", "1024"),
        "core_price": read(core_price, "core-price"),
        "job_price": read(job_price, "job-price"),
        "burst_price": read(burst_price, "burst-price"),
        "confidence": number(confidence, "confidence"),
        "seed": whole(seed, "seed", "0"),
        "jobs": None if jobs is None else whole(jobs, "jobs", "40000"),
        "workers": read_workers(workers),
    }
    study = changes(
        format=format, classes=classes, speedup=speedup, malleable=malleable, moldable=moldable,
        choose=choose, seed=None, load=None, duration=duration, estimates=estimates, pause=pause,
    )  # fmt: skip
    with progress_bar("jobs") as progress:
        found = api.plan(
            source, target, policy, growth=growth, add=add, halve=halve, night=night,
            make_malleable=make_malleable, progress=progress, **options,
            **{key: value for key, value in study.items() if value is not None},
        )  # fmt: skip
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    deliver_files(found, plot, report, quiet=as_json)
    finish(interrupted=found.status == "interrupted")


def _print(found: Plan) -> None:
    out = console()
    for sentence in found.words:
        out.print(sentence)
    # Where nothing was run there is nothing to see but the bound, which the words name.
    for headings, rows in (found.table() if found.jobs else ((), []), found.changes_table()):
        if rows:
            made = table("", *headings, words=0 if headings[0] == "cores" else 1)
            for row in rows:
                made.add_row(*row)
            out.print(made)
    if found.assumptions:
        say_assumptions(found.assumptions)
