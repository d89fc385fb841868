"""Numbers for JSON: infinities and NaN become null, NumPy's numbers and arrays become Python's."""

from __future__ import annotations

from math import isfinite
from typing import Any


def finite(document: Any) -> Any:
    """The document with infinities and NaN replaced by None and NumPy's numbers and arrays by Python's."""
    if isinstance(document, dict):
        return {key: finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [finite(value) for value in document]
    if hasattr(document, "tolist"):
        return finite(document.tolist())
    return None if isinstance(document, float) and not isfinite(document) else document
