"""What is slow and depends on the workload alone is computed once and kept."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Given = ParamSpec("Given")
Made = TypeVar("Made")

KEPT = 64
"""Values that a function keeps, those used last."""


def memoized(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """The function with a memory, which it does without where an argument does not hash (a user's law)."""
    kept = lru_cache(maxsize=KEPT)(make)

    @wraps(make)
    def recall(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return kept(*args, **kwargs)  # type: ignore[arg-type]
        except TypeError:
            return make(*args, **kwargs)

    return recall
