"""The keys of a JSON document."""

from __future__ import annotations

from typing import Any


def keys(document: Any) -> set[str]:
    """All keys of a document, however deep."""
    if isinstance(document, list):
        return set().union(*map(keys, document), set())
    return set(document) | set().union(*map(keys, document.values())) if isinstance(document, dict) else set()
