"""`malleable meanfield`: where the system settles when it is large, and how far a finite one is from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._shared import (
    JsonOption,
    LoadOption,
    ManyCoresOption,
    PolicyOption,
    WorkloadArgument,
    console,
    print_json,
    several,
    show,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def command(
    workload: WorkloadArgument,
    cores: ManyCoresOption,
    load: LoadOption = None,
    policy: PolicyOption = "wham",
    starts: Annotated[
        int, typer.Option("--starts", min=0, help="Random starts of the attractor study.")
    ] = 25,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random starts.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """The fluid limit of a class rule: fixed point, stability, and the 1/n correction."""
    from rich.console import Console
    from rich.progress import Progress

    from malleable import api

    settings, documents = several(cores, load), []
    described = api.read_workload(workload)
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("trajectories", total=starts * len(settings))
        for place, (n, rho) in enumerate(settings):
            before = place * starts
            report: Callable[[int, int], None] = lambda done, _, before=before: bar.update(  # type: ignore[misc]  # noqa: E731
                task, completed=before + done
            )
            result = api.mean_field(described, n, rho, policy, starts=starts, seed=seed, progress=report)
            documents.append({**result.to_dict(), "policy": policy})
    if as_json:
        print_json({"results": documents} if len(documents) > 1 else documents[0])
    elif len(documents) > 1:
        _print_many(described.name, documents)
    else:
        _print(described.name, documents[0])


def _print_many(name: str, documents: list[dict[str, Any]]) -> None:
    """The mean field on several numbers of cores, side by side."""
    columns = ("load", "n → ∞", "with 1/n", "coefficient", "stable")
    rows = table(f"{documents[0]['policy']} on {name}: cost per job", "cores", *columns, words=0)
    for one in documents:
        refined = one["refined"]
        numbers = (one["load"], one["cost"], refined["cost"], refined["coefficient"])
        rows.add_row(f"{one['cores']:.15g}", *map(show, numbers), "yes" if one["stable"] else "NO")
    console().print(rows)


def _print(name: str, document: dict[str, Any]) -> None:
    out = console()
    title = f"{document['policy']} on {name}, {document['cores']:g} cores, load {show(document['load'], 4)}"
    rows = table(title, "class", "cores per job", "jobs present")
    for row in document["fixed_point"]:
        rows.add_row(row["name"], show(row["cores"]), show(row["jobs"]))
    out.print(rows)
    refined, attractor = document["refined"], document["attractor"]
    facts = table("In the limit", "", "", words=1)
    facts.show_header = False
    facts.columns[1].no_wrap = False  # there may be many eigenvalues
    facts.add_row("cost per job, n → ∞", show(document["cost"], 10))
    facts.add_row(f"cost per job, n = {document['cores']:g} (1/n correction)", show(refined["cost"], 7))
    facts.add_row("coefficient of 1/n", show(refined["coefficient"], 7))
    first = document["first_order"]
    if first["best"] is not None:
        facts.add_row("best possible coefficient of 1/n", show(first["best"], 7))
    facts.add_row("locally stable", "yes" if document["stable"] else "NO")
    facts.add_row("eigenvalues", ", ".join(_eigenvalue(value) for value in document["eigenvalues"]))
    reached = f"{attractor['converged']} of {attractor['starts']}"
    facts.add_row("attracts every trajectory", "proved" if attractor["proved"] else "measured, not proved")
    facts.add_row("starts that reached the fixed point", reached)
    if attractor["meet"] is not None:
        facts.add_row(f"all within {attractor['within']:g} of it from time", show(attractor["meet"], 4))
    out.print(facts)
    if not attractor["proved"]:
        out.print(f"attraction is not proved: {attractor['reason']}")
    if refined.get("reason"):
        out.print(f"the 1/n correction does not apply: {refined['reason']}")
    out.print(_first_order(first))


def _first_order(first: dict[str, Any]) -> str:
    """One sentence on how near WHAM comes to the best possible term."""
    if first["best"] is None:
        return f"no best possible 1/n term: {first['reason']}"
    above = 100.0 * max(first["excess"], 0.0)
    sentence = f"WHAM is {above:.2g} % above the best possible first-order term"
    return sentence if first["applies"] else f"{sentence}, where that applies"


def _eigenvalue(value: Any) -> str:
    if isinstance(value, float):
        return show(value, 5)
    real, imaginary = value.values() if isinstance(value, dict) else value
    return f"{real:.5g}{imaginary:+.5g}i"
