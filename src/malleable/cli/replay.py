"""`malleable replay`: what other policies would have made of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from malleable.cli._logs import (
    ChooseOption,
    ClassesOption,
    DurationOption,
    EstimatesOption,
    FormatOption,
    LogArgument,
    LogCoresOption,
    MalleableOption,
    MoldableOption,
    PauseOption,
    SpeedupOption,
    StudyLoadOption,
    StudySeedOption,
    changes,
    read_cores,
    say_assumptions,
)
from malleable.cli._running import InterpretedOption, deliver, finish, percent, plus_minus, progress_bar
from malleable.cli._shared import JsonOption, console, print_json, show, table, whole

if TYPE_CHECKING:
    from rich.console import Console

    from malleable.replays import Replay, Schedule


def command(
    file: LogArgument,
    cores: LogCoresOption = None,
    policies: Annotated[
        str, typer.Option("--policies", metavar="P,Q,…", help="Policies: wham,easy,fcfs, file.py:Name.")
    ] = "wham,easy,fcfs",
    format: FormatOption = None,  # noqa: A002 - the option's name
    classes: ClassesOption = None,
    speedup: SpeedupOption = None,
    malleable: MalleableOption = None,
    moldable: MoldableOption = None,
    choose: ChooseOption = None,
    seed: StudySeedOption = None,
    load: StudyLoadOption = None,
    duration: DurationOption = None,
    estimates: EstimatesOption = None,
    pause: PauseOption = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="P", help="Policy to take differences from (the first)."),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(
            "--shares", metavar="A,B,…", help="Replay at shares of malleable jobs: 0,20,…,100 (in %)."
        ),
    ] = None,
    resample: Annotated[
        str | None,
        typer.Option("--resample", metavar="K", help="Intervals from K logs made of blocks of this one."),
    ] = None,
    no_bound: Annotated[
        bool, typer.Option("--no-bound", help="Leave out the bound, and with it gaps and blame.")
    ] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write a page about it (.html).")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Save comparison.json, comparison.npz and comparison.csv."),
    ] = None,
    interpreted: InterpretedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Policies on the jobs of a log: costs, waits, slowdowns, the least possible, and who is to blame."""
    from malleable import api
    from malleable.results import files

    options = changes(
        format=format, classes=classes, speedup=speedup, malleable=malleable, moldable=moldable,
        choose=choose, seed=seed, load=load, duration=duration, estimates=estimates, pause=pause,
    )  # fmt: skip
    if out is not None:
        files.check(files.table_path(out))
    if report is not None:
        api.check_report(report)
    with progress_bar() as progress:
        found = api.replay(
            file, read_cores(cores), policies, baseline=baseline, shares=shares, bound=not no_bound,
            resample=0 if resample is None else whole(resample, "resample", "20"),
            interpreted=interpreted, progress=progress, **options,
        )  # fmt: skip
    written = None if report is None else api.report(found, report)
    deliver(
        lambda: print_json(found.to_dict()) if as_json else _print(found),
        None if out is None else lambda: found.save_table(out),
        quiet=as_json,
    )
    if written is not None and not as_json:
        console().print(f"report in {written}", soft_wrap=True)
    finish(interrupted=found.interrupted)


def _print(found: Replay) -> None:
    out = console()
    name = found.jobs.workload.name
    _print_costs(out, found, f"{name}: {len(found.jobs):,} jobs on {found.cores:g} cores")
    _print_times(out, found)
    if found.certificate is not None:
        out.print(found.certificate, soft_wrap=True)
    fault = found.faults.get(found.best.policy)
    if fault is not None:
        for line in fault.words():
            out.print(line, soft_wrap=True)
    if found.calendar is not None:
        out.print(found.calendar.words, soft_wrap=True)
    if found.shares is not None:
        _print_shares(out, found)
    say_assumptions(found.jobs.assumptions)
    for note in dict.fromkeys((*found.all_notes, *(note for one in found.results for note in one.notes))):
        out.print(f"note: {note}", soft_wrap=True)


def _print_costs(out: Console, found: Replay, title: str) -> None:
    """Costs, gaps and differences; the least possible in the last row."""
    resampled = found.resampling is not None
    blank = ("",) if resampled else ()
    rows = table(
        title, "policy", "cost", *blank, "gap", "difference", *blank, "utilisation", "resizes", "Jain"
    )
    beside = {one.policy: one for one in found.comparison.differences}
    for one, result in zip(found.schedules, found.results, strict=True):
        apart = beside.get(one.policy)
        rows.add_row(
            one.policy,
            show(one.cost),
            *((_interval(result.cost.half_width),) if resampled else ()),
            percent(found.gap(one)),
            "" if apart is None else f"{apart.mean:+.4g}",
            *(("" if apart is None else _interval((apart.high - apart.low) / 2),) if resampled else ()),
            percent(_short(one.utilisation)),
            show(float(one.resizes.mean()), 3),
            show(one.jain, 3),
        )
    if found.bound is not None:
        blanks = [""] * (len(rows.columns) - 2)
        rows.add_row("least possible", show(found.bound.per_job), *blanks)
    out.print(rows)


def _interval(half: float) -> str:
    return "" if half == float("inf") else plus_minus(half)


def _short(share: float) -> float:
    return float(f"{share:.3g}")


def _print_times(out: Console, found: Replay) -> None:
    """Waits, response times and slowdowns: means and tails."""
    rows = table("Seconds, and bounded slowdowns", "policy", "wait", "p95", "response", "p50", "p95", "p99",
                 "by area", "slowdown", "p95", "p99")  # fmt: skip
    for one in found.schedules:
        rows.add_row(one.policy, *_times(one))
    out.print(rows)


def _times(one: Schedule) -> list[str]:
    measured = one.measures()
    wait, response, slowdown = (measured[key] for key in ("wait", "response", "slowdown"))
    values = (
        wait["mean"], wait["p95"], response["mean"], response["p50"], response["p95"], response["p99"],
        measured["area_response"], slowdown["mean"], slowdown["p95"], slowdown["p99"],
    )  # fmt: skip
    return [show(value, 4) for value in values]


def _print_shares(out: Console, found: Replay) -> None:
    """Costs by share of malleable jobs."""
    curve = found.shares
    if curve is None:
        return
    rows = table(
        "Cost by share of the jobs that are malleable", "malleable", *curve.policies, "least possible"
    )
    for share, costs, least in zip(curve.shares, curve.costs, curve.bounds, strict=True):
        rows.add_row(f"{100.0 * share:g} %", *(show(cost, 5) for cost in costs), show(least, 5))
    out.print(rows)
