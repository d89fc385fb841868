"""Job sizes as phases, for what needs a matrix: the fluid equation and the exact chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.distributions.base.phases import MOST_PHASES
from malleable.errors import UnsupportedError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import JobClass


def size_phases(job_class: JobClass, wanted: str) -> tuple[FloatArray, FloatArray]:
    """(p, Q) of a class's sizes; a law without phases, or with too many, has no such `wanted` thing."""
    law = job_class.size.phase_type()
    if law is not None:
        return law
    stages = getattr(job_class.size, "stages", 0)
    problem = f"have {stages} phases, too many for a matrix" if stages else "have no phases"
    raise UnsupportedError(
        f"class {job_class.name!r}: {job_class.size.kind} sizes {problem}, so no {wanted}",
        "use exponential, erlang, hyperexponential or phase_type sizes with the same moments, "
        f"of at most {MOST_PHASES} phases, or simulate",
    )
