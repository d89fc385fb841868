"""Options that ride behind a name, as on the command line: `fw-cam:beta=0.8`, `wham,equi,fw-cam:beta=0.8`."""

from __future__ import annotations

from typing import Any

from malleable.errors import UnknownKindError


def parse_options(text: str) -> dict[str, Any]:
    """Read `beta=0.8,shared=true` into numbers, booleans and strings."""
    options: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise UnknownKindError(
                f"cannot read the option {item!r}", "write options as name:key=value,key=value"
            )
        options[key.strip().replace("-", "_")] = _literal(value.strip())
    return options


def _literal(text: str) -> Any:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    parts = [_literal(part) for part in text.split("/")] if "/" in text else []
    # Widths such as 4/2/8 are a list; a name such as c/x is not.
    return tuple(parts) if parts and not any(isinstance(part, str) for part in parts) else text


def split_policies(text: str) -> list[str]:
    """Policies at the commas; `key=value` behind a comma still belongs to the policy before it."""
    found: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if found and "=" in part and ":" not in part.partition("=")[0]:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found
