"""Job classes: a job type, the law of its arrivals and the law of its sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge

from malleable.catalog.spec import NonNegative, Positive, Spec
from malleable.contracts import Arrivals, Distribution, Speedup
from malleable.errors import MalleableError, ParameterError
from malleable.model.job_type import ANY_WIDTH, NO_COST, JobType, Shape, check_name, check_shape
from malleable.model.resize import Resize
from malleable.model.widths import Widths

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class JobClass(Spec):
    """Jobs of one type that arrive alike and are of like sizes."""

    kind: ClassVar[str] = "a class"

    name: str
    arrivals: Arrivals
    size: Distribution
    speedup: Speedup
    holding_cost: Positive = 1.0
    shape: Shape = "malleable"
    width: Annotated[int, Ge(1)] | None = None
    widths: Widths = ANY_WIDTH
    resize: Resize = NO_COST
    quiet: NonNegative = 0.0

    def check(self) -> None:
        check_name(self.name)
        check_shape(self.shape, self.width, self.widths)
        rate, mean = _in_range(lambda: self.arrivals.rate), _in_range(lambda: self.size.mean)
        if not 0.0 < rate < math.inf:
            hint = "the mean time between arrivals must be positive and finite"
            raise ParameterError(f"the arrival rate is {rate:g}", hint, ("arrivals",))
        if not 0.0 < mean < math.inf:
            raise ParameterError(f"the mean size is {mean:g}", "it must be positive and finite", ("size",))
        if not 0.0 < rate * mean < math.inf:
            raise ParameterError(
                f"an arrival rate of {rate:g} with a mean size of {mean:g} is beyond the range of numbers",
                "choose another unit of time",
            )

    @property
    def job_type(self) -> JobType:
        """The class without its arrivals and sizes."""
        return JobType(
            self.name,
            self.speedup,
            self.holding_cost,
            self.shape,
            self.width,
            self.widths,
            self.resize,
            self.quiet,
        )

    def of_type(self, job_type: JobType, name: str) -> JobClass:
        """A class whose jobs arrive and are sized alike, but are of another type; costs stay.

        Both were checked, so the class is not: `allocate` makes thousands of them where jobs bring their own.
        """
        made = object.__new__(JobClass)
        made.__dict__.update(
            self.__dict__,
            name=name,
            speedup=job_type.speedup,
            shape=job_type.shape,
            width=job_type.width,
            widths=job_type.widths,
            resize=job_type.resize,
            quiet=job_type.quiet,
        )
        return made

    @property
    def load(self) -> float:
        """Work that arrives per unit of time, λ E[X]."""
        return self.arrivals.rate * self.size.mean

    def broken_conditions(self) -> list[str]:
        """The paper's conditions that this class does not meet, in words."""
        broken = []
        if not _has_moment(self.arrivals.interval, 2):
            broken.append("inter-arrival times have no finite second moment")
        if not _has_moment(self.size, 3):
            broken.append("sizes have no finite third moment")
        return broken

    def to_dict(self) -> dict[str, Any]:
        """The class as it stands in a workload file."""
        return {"name": self.name, **{k: v for k, v in self.parameters().items() if k != "name"}}


def _in_range(number: Callable[[], float]) -> float:
    """A number that may lie beyond the range of floats, where it counts as infinite."""
    try:
        with np.errstate(all="ignore"):
            value = float(number())
    except (ArithmeticError, MalleableError):
        return math.inf
    return math.inf if math.isnan(value) else value


def _has_moment(law: Distribution, order: int) -> bool:
    """Whether a moment is finite; one that is merely too large for a float is so in units of the mean."""
    in_some_unit = (lambda: law.moment(order), lambda: law.scaled(1.0 / law.mean).moment(order))
    return any(math.isfinite(_in_range(moment)) for moment in in_some_unit)
