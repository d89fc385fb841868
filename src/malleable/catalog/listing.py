"""What there is, in words: the summary and parameters of every kind, read off the code.

`malleable list` and the generated reference both come from here, so neither can fall behind.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from typing import Any

import annotated_types

from malleable.catalog import finding
from malleable.catalog.families import FAMILIES
from malleable.catalog.spec import INFINITY, Spec, annotation


def listing(family: str) -> list[dict[str, Any]]:
    """All kinds of a family: name, summary, and where there are any, parameters."""
    if family not in FAMILIES:
        return []
    return [describe(family, kind) for kind in sorted(finding.kinds(family))]


def describe(family: str, kind: str) -> dict[str, Any]:
    """One kind: its name, its summary, what a policy needs to know, and its parameters with their ranges."""
    cls = finding.find(family, kind)
    summary = (inspect.getdoc(cls) or "").splitlines()[0]
    words = getattr(cls, "needs", "")
    needs = {"needs": words} if words else {}
    return {"name": finding.display(family, kind), "summary": summary, **needs, "parameters": parameters(cls)}


def parameters(cls: type[Spec]) -> list[dict[str, Any]]:
    """Name, allowed values and default of each parameter of a kind."""
    found = []
    for f in dataclasses.fields(typing.cast("Any", cls)):
        row: dict[str, Any] = {"name": f.name, "allowed": allowed(annotation(cls, f.name))}
        others = [key for key, (name, _) in cls.alternatives.items() if name == f.name]
        if others:
            row["or"] = ", ".join(others)
        if f.default is not dataclasses.MISSING:
            row["default"] = f.default
        found.append(row)
    return found


def allowed(hint: Any) -> str:
    """A type with its range, as people write it: `0 < number < 1`."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        base, *limits = typing.get_args(hint)
        return _range(allowed(base), limits)
    if origin is typing.Literal:
        return ", ".join(dict.fromkeys(str(value) for value in typing.get_args(hint)))
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(allowed(part) for part in typing.get_args(hint) if part is not type(None))
    if origin is tuple:
        return f"list of {allowed(typing.get_args(hint)[0])}"
    return {float: "number", int: "integer", bool: "true or false", str: "text"}.get(
        hint, getattr(hint, "__name__", "any").lower()
    )


def _range(base: str, limits: list[Any]) -> str:
    low = high = ""
    for limit in limits:
        match limit:
            case annotated_types.Gt(gt=value):
                low = f"{value:g} < "
            case annotated_types.Ge(ge=value):
                low = f"{value:g} ≤ "
            case annotated_types.Lt(lt=value) if value != INFINITY:
                high = f" < {value:g}"
            case annotated_types.Le(le=value):
                high = f" ≤ {value:g}"
    return f"{low}{base}{high}"
