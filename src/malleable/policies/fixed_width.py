"""Fixed width: every job of a class runs on the same number of cores from start to end, FCFS.

One shared pool: jobs start in order of arrival; the first that does not fit waits and holds back those behind
it. Separate pools (`shared=false`): the cores are divided among the classes in proportion to what they use,
r_i = load_i·k_i/s_i(k_i), which makes ⌊n r_i/(Σr·k_i)⌋ slots for class i, never lent to another. A width
above n is cut to n. Running jobs are never interrupted or resized in either form.

FW-CAM is the choice of widths that is optimal in the mean field; this policy takes them as given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Lt, MinLen

from malleable.catalog.spec import INFINITY
from malleable.errors import InfeasibleError, ParameterError
from malleable.policies.base import ANY, COUNTS, DUST, POOLS, JobRule, Need, Program
from malleable.policies.rules.fixed_widths import fixed_rule, fixed_table, fixed_width, pools_table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

Width = Annotated[float, Ge(1), Lt(INFINITY)]


@dataclass(frozen=True)
class FixedWidth(JobRule):
    """Fixed width: every class on a given number of cores, FCFS, in one shared pool or one per class."""

    needs = "the widths that it is told"

    widths: Width | Annotated[tuple[Width, ...], MinLen(1)] = 2.0
    shared: bool = True

    sees_all: ClassVar[bool] = True
    rule = staticmethod(fixed_width)
    uses_speedups: ClassVar[bool] = False

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        """Separate pools need no look at single jobs."""
        if self.shared or need.by_job:
            return super().program(workload, cores, need)
        widths = np.minimum(self._widths(workload), cores)
        slots = tuple(int(slots) for slots in slots_of(workload, widths, cores))
        return Program(fixed_rule, fixed_table(workload.speedups, widths, cores), COUNTS, POOLS, slots)

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        widths = np.minimum(self._widths(workload), cores)
        slots = np.full(len(widths), np.inf) if self.shared else slots_of(workload, widths, cores)
        return pools_table(widths, slots, shared=self.shared)

    def _widths(self, workload: Workload) -> FloatArray:
        classes = len(workload.classes)
        if not isinstance(self.widths, tuple):
            return np.full(classes, float(self.widths))
        if len(self.widths) != classes:
            raise ParameterError(
                f"there are {len(self.widths)} widths for {classes} classes",
                "give one number for all classes, or one per class such as widths=4/2/8",
                ("fixed-width", "widths"),
            )
        return np.array(self.widths, dtype=float)


def slots_of(workload: Workload, widths: FloatArray, cores: float) -> FloatArray:
    """Slots of each class when the cores are divided in proportion to use."""
    speeds = np.array([float(s(k)) for s, k in zip(workload.speedups, widths, strict=True)])
    used = workload.loads * widths / speeds
    slots = np.floor(cores * used / used.sum() / widths + DUST)
    if not slots.all():
        name = workload.class_names[int(np.argmin(slots))]
        raise InfeasibleError(
            f"fixed-width: class {name!r} gets no slot out of {cores:g} cores",
            "give more cores or smaller widths, or use shared=true",
        )
    return np.asarray(slots, dtype=float)
