"""`malleable simulate`: what a policy costs, measured."""

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
    CoresOption,
    JsonOption,
    LoadOption,
    PolicyOption,
    WorkloadArgument,
    console,
    print_json,
    scale,
    show,
    table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from malleable.results import Result


def command(
    workload: WorkloadArgument,
    cores: CoresOption,
    policy: PolicyOption = "wham",
    load: LoadOption = None,
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
        str | None, typer.Option("--out", metavar="FILE", help="Save the result (FILE.json and FILE.npz).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Cost and response times of a policy, simulated, with intervals, beside the lower bound."""
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
    from malleable.results import Status, files

    described = api.read_workload(workload)
    n, rho = scale(cores, load)
    most = read_workers(workers)
    if out is not None:
        files.check(files.document_path(out))
    with executor(ray) as elsewhere, progress_bar("jobs" if ray is None else "tasks") as progress:
        result = api.simulate(
            described, n, policy, load=rho, executor=elsewhere, progress=progress, workers=most, **options
        )
    deliver(
        lambda: print_json(result.to_dict()) if as_json else _print(result, widths=widths),
        None if out is None else lambda: result.save(out),
        quiet=as_json,
    )
    finish(interrupted=result.status == Status.INTERRUPTED)


def _print(result: Result, *, widths: bool) -> None:
    out = console()
    name = result.workload.name if result.workload else "workload"
    title = f"{result.policy} on {name}, {result.cores:g} cores, load {show(result.load, 4)}{label(result)}"
    rows = table(title, "class", "response time", "", "p50", "p95", "p99", "jobs")
    for c in result.classes:
        time = c.response_time
        tail = (show(value, 4) for value in c.response)
        rows.add_row(c.name, show(time.mean), plus_minus(time.half_width), *tail, str(c.jobs))
    out.print(rows)
    if widths:
        _print_widths(out, result)
    facts = table(f"With intervals of {percent(result.confidence)}", "", "", "", words=1)
    facts.show_header = False
    facts.add_row("cost per job", show(result.cost.mean), plus_minus(result.cost.half_width))
    facts.add_row(f"lower bound ({result.bound_name or 'V*'})", show(result.bound_tight), "")
    doubtful = result.notes and result.gap is not None and result.gap < 0.0
    facts.add_row("cost above the bound", percent(result.gap), "see the note" if doubtful else "")
    if result.bound_jobs is not None:
        known = result.bound_jobs
        facts.add_row("lower bound if all jobs were known", show(known.mean), plus_minus(known.half_width))
        facts.add_row("cost above that", percent_between(result.gap_jobs), "")
    facts.add_row("utilisation (share of the cores in use)", percent(result.utilisation), "")
    facts.add_row("effective load (the same, less the noise of arrivals)", percent(result.effective_load), "")
    facts.add_row("time with more jobs than cores", percent(result.overload), "")
    if result.mean_cores is not None:
        facts.add_row("cores there were on average", show(result.mean_cores), "")
    if any(c.resizes for c in result.classes):
        facts.add_row("resizes per job, by class", ", ".join(show(c.resizes, 3) for c in result.classes), "")
    facts.add_row("jobs, of which warm-up", str(result.jobs), str(result.warmup))
    facts.add_row("replications, seed", str(result.replications), str(result.seed))
    out.print(facts)
    print_notes(result)
    rate = result.events_per_second
    if rate is not None:
        out.print(f"{result.events} events at {rate / 1e6:.3g} million per second")


def _print_widths(out: Console, result: Result) -> None:
    rows = table("Cores that work was done on", "class", "p50", "p95", "p99")
    for c in result.classes:
        rows.add_row(c.name, *(show(value, 4) for value in c.width))
    out.print(rows)
