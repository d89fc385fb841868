"""`malleable play`: policies on the live system, in real time, beside the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._running import (
    SeedOption,
    deliver,
    finish,
    label,
    percent,
    plus_minus,
    print_notes,
    progress_bar,
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
    whole,
)

if TYPE_CHECKING:
    from malleable.live.play import Played


def command(
    workload: WorkloadArgument,
    cores: Annotated[str, typer.Option("--cores", "-n", metavar="N", help="Number of cores, virtual ones.")],
    policy: Annotated[
        str, typer.Option("--policy", metavar="P,Q,…", help="Policies: wham,equi,greedy, file.py:Name.")
    ] = "wham",
    jobs: Annotated[str, typer.Option("--jobs", metavar="M", help="Jobs to play under each policy.")] = "500",
    speed: Annotated[
        str | None,
        typer.Option(
            "--speed",
            metavar="X",
            help="Units of model time per second; by default jobs are there for 0.1 s on average.",
        ),
    ] = None,
    load: LoadOption = None,
    seed: SeedOption = "0",
    warmup: Annotated[
        str | None,
        typer.Option("--warmup", metavar="W", help="Jobs to leave out at the start (a tenth)."),
    ] = None,
    burn: Annotated[
        bool, typer.Option("--burn", help="Burn CPU time on the CPUs of this machine instead of sleeping.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Save comparison.json, comparison.npz and comparison.csv."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Save the jobs as a log that `malleable replay` reads."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A generated workload on the live system, in real time, beside the simulator on the same jobs."""
    from pathlib import Path

    from malleable import api
    from malleable.catalog import split_policies
    from malleable.results import files

    described = api.read_workload(workload)
    if out is not None:
        files.check(files.table_path(out))
    if log is not None:
        files.check(Path(log))
    with progress_bar("jobs") as progress:
        found = api.play(
            described,
            whole(cores, "cores", "32"),
            split_policies(policy),
            jobs=whole(jobs, "jobs", "500"),
            speed=None if speed is None else number(speed, "speed"),
            load=None if load is None else number(load, "load"),
            seed=whole(seed, "seed", "0"),
            warmup=None if warmup is None else whole(warmup, "warmup", "50"),
            burn=burn,
            progress=progress,
        )
    if found.policies:
        if log is not None:
            files.put(Path(log), found.log().encode())
        deliver(
            lambda: print_json(found.to_dict()) if as_json else _print(found),
            None if out is None else lambda: found.comparison().save_table(out),
            quiet=as_json,
        )
    finish(interrupted=found.interrupted)


def _print(found: Played) -> None:
    out = console()
    first = found.policies[0].live
    name = first.workload.name if first.workload else "workload"
    how = "burning CPU time" if found.burned else "sleeping"
    title = (
        f"{name}, {first.cores:g} cores, load {show(first.load, 4)}, {first.jobs} jobs, live and simulated"
    )
    columns = ("policy", "live", "", "simulated", "difference", "", "share", "gap", "late, ms")
    rows = table(title, *columns)
    for one in found.policies:
        live, difference = one.live, one.difference
        rows.add_row(
            f"{live.policy}{' *' if label(live) else ''}",
            show(live.cost.mean),
            plus_minus(live.cost.half_width),
            show(one.simulated.cost.mean),
            f"{difference.mean:+.4g}",
            plus_minus((difference.high - difference.low) / 2),
            f"{100.0 * one.share:+.2f} %",
            percent(live.gap),
            show(1e3 * one.lateness.mean, 2),
        )
    out.print(rows)
    out.print(f"{found.speed:.3g} units of time per second, jobs {how}, warm-up of {first.warmup} jobs")
    out.print(f"gap: cost live above the lower bound {show(first.bound_tight)} ({first.bound_name})")
    if len(found.policies) > 1:
        out.print(f"in the same order live as simulated: {'yes' if found.same_order else 'no'}")
    for one in found.policies:
        if label(one.live):
            out.print(f"* {one.live.policy}:{label(one.live)}")
        print_notes(one.live, f"{one.live.policy}: ")
