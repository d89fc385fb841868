"""Job types: what the jobs of a class have in common, whatever brings them.

A trace and a live scheduler know how fast their jobs run on k cores and how much they matter, but no law of
arrivals and sizes; a `JobClass` adds these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from malleable.catalog.spec import Positive, Spec
from malleable.contracts import Speedup
from malleable.errors import ParameterError


@dataclass(frozen=True)
class JobType(Spec):
    """Jobs that speed up and matter alike; `weight` is the cost of keeping one for one unit of time."""

    kind: ClassVar[str] = "a job type"

    name: str
    speedup: Speedup
    weight: Positive = 1.0

    def check(self) -> None:
        check_name(self.name)


def check_name(name: str) -> None:
    """Refuse an empty name: errors and tables would have nothing to call the jobs by."""
    if not name:
        raise ParameterError("must not be empty", path=("name",))
