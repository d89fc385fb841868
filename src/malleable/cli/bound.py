"""`malleable bound`: no policy can do better than this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._shared import (
    CapacityOption,
    CoresOption,
    JsonOption,
    LoadOption,
    WorkloadArgument,
    console,
    print_json,
    scale,
    show,
    table,
)

if TYPE_CHECKING:
    from malleable.theory.relaxed import Bound


def command(
    workload: WorkloadArgument,
    cores: CoresOption,
    load: LoadOption = None,
    capacity: CapacityOption = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan", metavar="P", help="Show the fixed slots of fw-cam:beta=0.8 or fw-cam-repaired, too."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The lower bound on the cost of any policy, and the widths behind it."""
    from malleable import api

    described = api.read_workload(workload)
    result = api.bound(described, *scale(cores, load), capacity=capacity)
    slots = plan and api.fixed_plan(described, *scale(cores, load), plan).described()
    if as_json:
        print_json({**result.to_dict(), **({"plan": slots} if slots else {})})
        return
    _print(result)
    if slots:
        _print_plan(plan or "", slots, result.bound)


def _print_plan(policy: str, slots: dict[str, Any], lowest: float) -> None:
    out = console()
    head = ("class", "slots", "cores per slot", "cores set aside", "slots in use", "expected wait")
    rows = table(f"{policy} on {slots['cores']:g} cores", *head)
    for pool in slots["pools"]:
        wait = "–" if pool["wait"] is None else show(pool["wait"])
        used = f"{pool['utilisation']:.1%}"
        rows.add_row(pool["name"], f"{pool['slots']}", show(pool["width"]), show(pool["cores"]), used, wait)
    out.print(rows)
    if slots["cost"] is None:
        out.print(f"waits and cost are not known exactly: {slots['reason']}")
    else:
        out.print(f"exact cost per job {show(slots['cost'], 8)}, {slots['cost'] / lowest - 1.0:.1%} above V*")


def _print(result: Bound) -> None:
    out = console()
    title = f"{result.workload.name} on {result.cores:g} cores, load {show(result.load, 4)}"
    classes = table(title, "class", "cores per job", "response time", "jobs present", "cores in use")
    for row in result.classes:
        numbers = (row.cores, row.response_time, row.jobs, row.cores * row.jobs)
        classes.add_row(row.name, *map(show, numbers))
    out.print(classes)
    facts = table("No policy costs less per job than", "", "", words=1)
    facts.show_header = False
    if result.workload.restricted:
        facts.add_row("lower bound if jobs could have any width", show(result.unrestricted, 10))
    facts.add_row("lower bound V*", show(result.bound, 10))
    facts.add_row("… with no job on more than n cores", show(result.bound_capped, 10))
    facts.add_row("… and whole cores only", show(result.bound_integer, 10))
    if result.workload.restricted:
        more = f"with {result.cores + 1.0:.15g} cores"
        facts.add_row(f"{more}, saved per unit of time", show(result.next_core_saves))
        facts.add_row(f"{more}, the bound is lower by", show(result.next_core_value))
    else:
        facts.add_row("one more core saves, per unit of time", show(result.price))
        facts.add_row("one more core lowers the bound by", show(result.core_value))
    facts.add_row("effective load", show(result.effective_load))
    if result.mean_cores != result.cores:
        facts.add_row("cores there are on average", show(result.mean_cores))
    out.print(facts)
