"""One class in a result, and how numbers that may not exist go to JSON and back."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

from malleable.statistics import Estimate, Percentiles

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ClassResult:
    """One class after the warm-up."""

    name: str
    response_time: Estimate
    response: Percentiles
    """Percentiles of the response time."""
    mean_slowdown: float
    """Mean of response time / size."""
    slowdown: Percentiles
    width: Percentiles
    """Percentiles of the cores that work was done on; half the work was done on at most p50 cores."""
    jobs: int
    """Jobs that left, on which the other numbers rest."""
    present: float
    """Mean number of jobs present."""
    little: float
    """Relative residual of Little's law, a self-check."""
    resizes: float | None = None
    """Mean number of resizes per job; None where they were not counted, as they were free and all jobs of a
    class were resized at every event."""

    def to_dict(self) -> dict[str, Any]:
        """The class's part of the JSON document."""
        return {
            "name": self.name,
            "response_time": interval(self.response_time),
            **self.response._asdict(),
            "jobs": self.jobs,
            "slowdown": {"mean": number(self.mean_slowdown), **self.slowdown._asdict()},
            "width": self.width._asdict(),
            "present": number(self.present),
            "little": number(self.little),
            "resizes": number(self.resizes),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ClassResult:
        """Read what `to_dict` wrote."""

        def tail(table: Mapping[str, Any]) -> Percentiles:
            return Percentiles(*(table[key] for key in Percentiles._fields))

        return cls(
            name=document["name"],
            response_time=read_interval(document["response_time"]),
            response=tail(document),
            mean_slowdown=read_number(document["slowdown"]["mean"]),
            slowdown=tail(document["slowdown"]),
            width=tail(document["width"]),
            jobs=document["jobs"],
            present=read_number(document["present"]),
            little=read_number(document["little"]),
            resizes=document.get("resizes"),
        )


def number(value: float | None) -> float | None:
    """A number as JSON has it: null when it is not finite."""
    return None if value is None or not isfinite(value) else float(value)


def read_number(value: float | None) -> float:
    """A number back from JSON."""
    return nan if value is None else float(value)


def interval(estimate: Estimate) -> dict[str, float | None]:
    """An estimate as JSON has it."""
    return {key: number(getattr(estimate, key)) for key in ("mean", "low", "high")}


def read_interval(table: Mapping[str, float | None]) -> Estimate:
    """An estimate back from JSON; a missing end is an infinite one."""
    low, high = table["low"], table["high"]
    return Estimate(read_number(table["mean"]), -inf if low is None else low, inf if high is None else high)
