"""Standard input as text, whatever the locale says."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from malleable.errors import ParameterError

if TYPE_CHECKING:
    from typing import TextIO


def standard_input() -> TextIO:
    """Standard input as UTF-8, with the ends of lines as they are."""
    if sys.stdin is None or sys.stdin.closed:
        raise ParameterError("there is no standard input", "give a file in place of -")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict", newline="")
    return sys.stdin
