"""`malleable bound`: no policy can do better than this."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    as_json: JsonOption = False,
) -> None:
    """The lower bound on the cost of any policy, and the widths behind it."""
    from malleable import api

    result = api.bound(workload, *scale(cores, load), capacity=capacity)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)


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
