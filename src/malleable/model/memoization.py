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


class _FailedError(Exception):
    """Carries a `TypeError` of the function past the one that says that an argument does not hash."""

    def __init__(self, error: TypeError) -> None:
        super().__init__(error)
        self.error = error


def memoized(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """The function with a memory, which it does without where an argument does not hash (a user's law)."""

    @lru_cache(maxsize=KEPT)
    def kept(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return make(*args, **kwargs)
        except TypeError as error:  # `UnsupportedError` is one
            raise _FailedError(error) from None

    @wraps(make)
    def recall(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return kept(*args, **kwargs)  # type: ignore[arg-type]
        except _FailedError as failed:
            error = failed.error
        except TypeError:
            return make(*args, **kwargs)
        raise error

    return recall
