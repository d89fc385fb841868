"""Tables with a `kind`, as they stand in a document, as the kinds that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from malleable.catalog.finding import find, kinds
from malleable.errors import MalleableError, ParameterError, did_you_mean


def from_document(family: str, value: Any) -> Any:
    """Build a spec from a table with a `kind`; errors name the key."""
    if not isinstance(value, Mapping):
        hint = "write a table, such as { kind = ... }"
        raise ParameterError(f"must be a table with a 'kind', got {value!r:.60}", hint)
    if "kind" not in value:
        raise ParameterError("missing key 'kind'", f"known kinds: {', '.join(sorted(kinds(family)))}")
    kind = value["kind"]
    if not isinstance(kind, str):
        raise ParameterError(f"must be a string, got {kind!r:.60}", path=("kind",))
    try:
        cls = find(family, kind)
    except MalleableError as error:
        raise error.within("kind") from None
    keys = {key: item for key, item in value.items() if key != "kind"}
    if not all(isinstance(key, str) for key in keys):
        raise ParameterError(f"keys must be strings, got {list(keys)!r:.60}", did_you_mean(kind, [kind]))
    return cls.from_parameters(keys)
