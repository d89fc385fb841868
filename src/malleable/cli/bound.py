"""`malleable bound`: no policy can do better than this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._shared import (
    CapacityOption,
    JsonOption,
    LoadOption,
    ManyCoresOption,
    WorkloadArgument,
    console,
    print_json,
    several,
    show,
    table,
)

if TYPE_CHECKING:
    from malleable.theory.relaxed import Bound


def command(
    workload: WorkloadArgument,
    cores: ManyCoresOption,
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

    settings = several(cores, load)
    described = api.read_workload(workload)
    results = [api.bound(described, *each, capacity=capacity) for each in settings]
    plans = [plan and api.fixed_plan(described, *each, plan).described() for each in settings]
    documents = [
        {**one.to_dict(), **({"plan": slots} if slots else {})}
        for one, slots in zip(results, plans, strict=True)
    ]
    if as_json:
        print_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    if len(results) > 1:
        _print_many(results)
    else:
        _print(results[0])
    for one, slots in zip(results, plans, strict=True):
        if slots:
            _print_plan(plan or "", slots, one.bound)


def _print_many(results: list[Bound]) -> None:
    """The bounds on several numbers of cores side by side."""
    columns = (
        "load",
        "V*",
        "no job above n",
        "whole cores",
        "price",
        "one more core saves",
        "effective load",
    )
    rows = table(f"{results[0].workload.name}: no policy costs less per job than", "cores", *columns, words=0)
    for one in results:
        saves = one.next_core_saves if one.workload.restricted else one.price
        numbers = (one.load, one.bound, one.bound_capped, one.bound_integer, one.price, saves)
        rows.add_row(f"{one.cores:.15g}", *map(show, numbers), show(one.effective_load, 4))
    console().print(rows)


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
