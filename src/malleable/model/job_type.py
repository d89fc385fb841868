"""Job types: what the jobs of a class have in common, whatever brings them.

A trace and a live scheduler know how fast their jobs run on k cores and how much they matter, but no law of
arrivals and sizes; a `JobClass` adds these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from malleable.catalog.spec import NonNegative, Positive, Spec
from malleable.contracts import Speedup
from malleable.errors import ParameterError
from malleable.model.resize import Resize
from malleable.model.widths import WHOLE, Widths

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

ANY_WIDTH, NO_COST = Widths(), Resize()
"""The paper's jobs: any width, for free."""
Shape = Literal["malleable", "moldable", "rigid"]
"""Resized at any time; a width chosen at the start and kept; exactly the width asked for."""


@dataclass(frozen=True)
class JobType(Spec):
    """Jobs that speed up and matter alike; `weight` is the cost of keeping one for one unit of time."""

    kind: ClassVar[str] = "a job type"

    name: str
    speedup: Speedup
    weight: Positive = 1.0
    shape: Shape = "malleable"
    width: Annotated[int, Ge(1)] | None = None
    widths: Widths = ANY_WIDTH
    resize: Resize = NO_COST
    quiet: NonNegative = 0.0

    def check(self) -> None:
        check_name(self.name)
        check_shape(self.shape, self.width, self.widths)

    @property
    def allowed_widths(self) -> Widths:
        """The widths that its jobs can run on: the one of a rigid job, or those allowed.

        A width that is chosen once and kept is a whole one, unless a choice is given.
        """
        if self.width is not None:
            return Widths((self.width,))
        return Widths(WHOLE) if self.shape == "moldable" and self.widths.unrestricted else self.widths

    def limited(self, shape: Shape | None = None, width: Any = None, widths: Any = None) -> JobType:
        """The same with a shape and widths of a job's own: a width makes it rigid, widths make it not."""
        if shape is None:
            shape = "rigid" if width is not None else self.shape
            shape = "malleable" if widths is not None and shape == "rigid" else shape
        if shape != "rigid":
            # A width makes no sense then, and the class's own may be a rigid job's.
            return replace(self, shape=shape, width=width, widths=self.widths if widths is None else widths)
        return replace(
            self, shape=shape, width=self.width if width is None else width, widths=widths or ANY_WIDTH
        )

    def widths_on(self, cores: float) -> FloatArray | None:
        """The allowed widths on so many cores, None where any is; an error if none of them is there."""
        allowed = self.allowed_widths.allowed(cores)
        if allowed is not None and not len(allowed):
            least = self.allowed_widths.least
            raise ParameterError(
                f"class {self.name!r}: its jobs need at least {least} cores, and there are {cores:g}",
                "give more cores, or allow narrower widths",
            )
        return allowed

    @property
    def plain(self) -> bool:
        """Whether its jobs take any width, at any time, for free: the paper's jobs."""
        return (
            self.shape == "malleable"
            and self.allowed_widths.unrestricted
            and self.resize.free
            and self.quiet == 0.0
        )


def check_name(name: str) -> None:
    """Refuse an empty name: errors and tables would have nothing to call the jobs by."""
    if not name:
        raise ParameterError("must not be empty", path=("name",))


def check_shape(shape: Shape, width: int | None, widths: Widths) -> None:
    """Refuse a rigid job without a width, or with a choice of widths, and a width that others cannot have."""
    if shape == "rigid":
        if width is None:
            raise ParameterError("a rigid job needs its width", "add width = 4, say", ("width",))
        if not widths.unrestricted:
            raise ParameterError("a rigid job has one width, no choice of them", "drop widths", ("widths",))
    elif width is not None:
        raise ParameterError(
            f"a {shape} job has no width of its own", 'write shape = "rigid", or widths = […]', ("width",)
        )
