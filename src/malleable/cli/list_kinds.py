"""`malleable list`: what there is to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.catalog.families import LISTED, there_are
from malleable.cli._shared import JsonOption, console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console


def command(
    family: Annotated[
        str | None,
        typer.Argument(help=f"{', '.join(there_are()[:-1])} or {there_are()[-1]}."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Policies, speedups, distributions and workloads, with their parameters."""
    from malleable import api
    from malleable.errors import UnknownKindError, did_you_mean

    if family is not None and family not in LISTED:
        raise UnknownKindError(
            f"there is nothing called {family!r} to list", did_you_mean(family, there_are())
        )
    wanted = LISTED if family is None else (family,)
    found = {name: api.listing(name) for name in wanted}
    if as_json:
        print_json([row if family else {"family": name, **row} for name in wanted for row in found[name]])
        return
    out = console()
    for name in wanted:
        if found[name] or family:
            _print(out, name, found[name])


def _print(out: Console, family: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        out.print(f"there are no {family} yet")
        return
    needs = ["needs to know"] if any("needs" in row for row in rows) else []
    made = table(family, "name", "what it is", *needs, "parameters", words=3 + len(needs))
    for row in rows:
        known = [row.get("needs", "")] if needs else []
        parameters = ", ".join(map(_parameter, row.get("parameters", [])))
        made.add_row(row["name"], row["summary"], *known, parameters)
    out.print(made)


def _parameter(row: dict[str, Any]) -> str:
    name = f"{row['name']} (or {row['or']})" if "or" in row else row["name"]
    return f"{name} = {row['default']}" if "default" in row else name
