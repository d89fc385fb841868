"""`malleable compare`: several policies on the same jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._running import (
    ConfidenceOption,
    InterpretedOption,
    JobsOption,
    PrecisionOption,
    RayOption,
    ReplicationsOption,
    SeedOption,
    UnstableOption,
    WarmupOption,
    WidthsOption,
    executor,
    finish,
    label,
    percent,
    plus_minus,
    print_notes,
    progress_bar,
    settings,
)
from malleable.cli._shared import (
    JsonOption,
    LoadOption,
    WorkloadArgument,
    console,
    number,
    print_json,
    show,
    table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from malleable.results import Comparison


def command(
    workload: WorkloadArgument,
    cores: Annotated[str, typer.Option("--cores", "-n", metavar="A,B,…", help="Numbers of cores.")],
    policies: Annotated[
        str, typer.Option("--policies", metavar="P,Q,…", help="Policies: wham,fw-cam:beta=0.8,file.py:Name.")
    ],
    load: LoadOption = None,
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
    )
    grid, names = [number(text, "cores") for text in cores.split(",")], split_policies(policies)
    scale = None if load is None else number(load, "load")

    from malleable.results import Status
    from malleable.simulation import compare

    with executor(ray) as workers, progress_bar("jobs" if ray is None else "tasks") as progress:
        found = compare(
            workload,
            grid,
            names,
            load=scale,
            baseline=baseline,
            executor=workers,
            progress=progress,
            **options,
        )
    saved = None if out is None else found.save_table(out)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, saved)
    missing = len(found.results) < len(grid) * len(names)
    finish(interrupted=missing or any(r.status == Status.INTERRUPTED for r in found.results))


def split_policies(text: str) -> list[str]:
    """Policies at the commas; `key=value` behind a comma still belongs to the policy before it."""
    found: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if found and "=" in part and ":" not in part.partition("=")[0]:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def _print(found: Comparison, saved: Path | None) -> None:
    out = console()
    first = found.results[0]
    beside = {(d.cores, d.policy): d for d in found.differences}
    baseline = found.differences[0].baseline if found.differences else first.policy
    name = first.workload.name if first.workload else "workload"
    loads = ", ".join(dict.fromkeys(show(result.load, 4) for result in found.results))
    title = f"{name}, load {loads}; differences from {baseline} on the same jobs"
    rows = table(title, "cores", "policy", "cost", "", "gap", "difference", "", words=2)
    rows.columns[1].overflow = "fold"
    for result in found.results:
        other = beside.get((result.cores, result.policy))
        change = (
            ("", "") if other is None else (f"{other.mean:+.4g}", plus_minus((other.high - other.low) / 2))
        )
        rows.add_row(
            f"{result.cores:g}",
            f"{result.policy}{' *' if label(result) else ''}",
            show(result.cost.mean),
            plus_minus(result.cost.half_width),
            percent(result.gap),
            *change,
        )
    out.print(rows)
    _print_bounds(out, found)
    for result in found.results:
        if label(result):
            out.print(f"* {result.policy} on {result.cores:g} cores:{label(result)}", markup=False)
        print_notes(result, f"{result.policy} on {result.cores:g} cores: ")
    if saved is not None:
        out.print(f"saved to {saved}", markup=False)


def _print_bounds(out: Console, found: Comparison) -> None:
    """Which lower bound the gaps are to; policies on whole cores have a tighter one."""
    named: dict[str, list[str]] = {}
    for result in found.results:
        if result.bound_name is not None and result.policy not in named.setdefault(result.bound_name, []):
            named[result.bound_name].append(result.policy)
    for name, policies in named.items():
        whose = f" of {', '.join(policies)}" if len(named) > 1 else ""
        out.print(f"gap{whose}: cost above the lower bound ({name})", markup=False)
