"""`malleable compare`: several policies on the same jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._running import (
    BoundOption,
    ConfidenceOption,
    EngineOption,
    InterpretedOption,
    JobsOption,
    PrecisionOption,
    RayOption,
    ReplicationsOption,
    SeedOption,
    SizesOption,
    UnstableOption,
    WarmupOption,
    WidthsOption,
    WorkersOption,
    deliver,
    executor,
    finish,
    label,
    percent,
    percent_between,
    plus_minus,
    print_notes,
    progress_bar,
    read_workers,
    settings,
)
from malleable.cli._shared import (
    CapacityOption,
    JsonOption,
    WorkloadArgument,
    console,
    number,
    print_json,
    show,
    table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from malleable.results import Comparison


def command(
    workload: WorkloadArgument,
    cores: Annotated[str, typer.Option("--cores", "-n", metavar="A,B,…", help="Numbers of cores.")],
    policies: Annotated[
        str, typer.Option("--policies", metavar="P,Q,…", help="Policies: wham,fw-cam:beta=0.8,file.py:Name.")
    ],
    load: Annotated[
        str | None,
        typer.Option(
            "--load", metavar="R,S,…", help="Scale the arrival rates to these system loads (0 < R < 1)."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="P", help="Policy to take differences from (the first)."),
    ] = None,
    jobs: JobsOption = None,
    seed: SeedOption = "0",
    replications: ReplicationsOption = "1",
    precision: PrecisionOption = None,
    warmup: WarmupOption = None,
    confidence: ConfidenceOption = "0.95",
    interpreted: InterpretedOption = False,
    allow_unstable: UnstableOption = False,
    widths: WidthsOption = False,
    sizes: SizesOption = "known",
    capacity: CapacityOption = None,
    bound: BoundOption = None,
    engine: EngineOption = "auto",
    workers: WorkersOption = None,
    ray: RayOption = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Save comparison.json, comparison.npz and comparison.csv."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Several policies on the same jobs, with paired differences of their costs."""
    options = settings(
        jobs=jobs,
        seed=seed,
        replications=replications,
        precision=precision,
        warmup=warmup,
        confidence=confidence,
        interpreted=interpreted,
        allow_unstable=allow_unstable,
        widths=widths,
        sizes=sizes,
        capacity=capacity,
        bound=bound,
        engine=engine,
    )
    from malleable import api
    from malleable.catalog import split_policies
    from malleable.results import Status, files

    grid, names = [number(text, "cores") for text in cores.split(",")], split_policies(policies)
    loads = None if load is None else [number(text, "load") for text in load.split(",")]
    described = api.read_workload(workload)
    most = read_workers(workers)
    if out is not None:
        files.check(files.table_path(out))
    with executor(ray) as elsewhere, progress_bar("jobs" if ray is None else "tasks") as progress:
        found = api.compare(
            described,
            grid,
            names,
            load=loads,
            baseline=baseline,
            executor=elsewhere,
            progress=progress,
            workers=most,
            **options,
        )
    deliver(
        lambda: print_json(found.to_dict()) if as_json else _print(found),
        None if out is None else lambda: found.save_table(out),
        quiet=as_json,
    )
    missing = len(found.results) < len(grid) * len(loads or [None]) * len(names)
    finish(interrupted=missing or any(r.status == Status.INTERRUPTED for r in found.results))


def _print(found: Comparison) -> None:
    out = console()
    first = found.results[0]
    beside = {(d.cores, d.load, d.policy): d for d in found.differences}
    baseline = found.differences[0].baseline if found.differences else first.policy
    name = first.workload.name if first.workload else "workload"
    several = _several_loads(found)
    loads = ", ".join(dict.fromkeys(show(result.load, 4) for result in found.results))
    title = f"{name}{'' if several else f', load {loads}'}; differences from {baseline} on the same jobs"
    places = ("cores", "load") if several else ("cores",)
    words = len(places) + 1
    known = any(result.bound_jobs is not None for result in found.results)
    gaps = ("gap", "gap, jobs known") if known else ("gap",)
    rows = table(title, *places, "policy", "cost", "", *gaps, "difference", "", words=words)
    for result in found.results:
        other = beside.get((result.cores, result.load, result.policy))
        change = (
            ("", "") if other is None else (f"{other.mean:+.4g}", plus_minus((other.high - other.low) / 2))
        )
        rows.add_row(
            *(f"{result.cores:g}", show(result.load, 4))[: len(places)],
            f"{result.policy}{' *' if label(result) else ''}",
            show(result.cost.mean),
            plus_minus(result.cost.half_width),
            percent(result.gap),
            *((percent_between(result.gap_jobs),) if known else ()),
            *change,
        )
    out.print(rows)
    _print_bounds(out, found)
    for result in found.results:
        place = f"{result.policy} on {result.cores:g} cores"
        place += f" at load {show(result.load, 4)}" if several else ""
        if label(result):
            out.print(f"* {place}:{label(result)}")
        print_notes(result, f"{place}: ")


def _several_loads(found: Comparison) -> bool:
    """Whether there is more than one load at the same number of cores."""
    return len({(r.cores, r.load) for r in found.results}) > len({r.cores for r in found.results})


def _print_bounds(out: Console, found: Comparison) -> None:
    """Which lower bound the gaps are to; policies on whole cores have a tighter one."""
    named: dict[str, list[str]] = {}
    for result in found.results:
        if result.bound_name is not None and result.policy not in named.setdefault(result.bound_name, []):
            named[result.bound_name].append(result.policy)
    for name, policies in named.items():
        whose = f" of {', '.join(policies)}" if len(named) > 1 else ""
        out.print(f"gap{whose}: cost above the lower bound ({name})")
    if any(result.bound_jobs is not None for result in found.results):
        out.print("gap, jobs known: cost above what any policy must pay, even one that knows all jobs")
