"""How to run: how many jobs, from which seed, how often, how precisely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.catalog.spec import whole_number
from malleable.contracts import Capacity
from malleable.engine.engines import DEFAULT_ENGINE
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from malleable.model import Workload

DEFAULT_JOBS = 1_000_000
FILLINGS = 30.0
"""The default length, in multiples of the jobs that are present with one core each: a large system starts
empty and has to fill first."""
SIZES = ("known", "unknown")
BOUNDS = (None, "jobs")
MOST_JOBS = 1_000_000_000
"""Where a run with a precision but no number of jobs gives up."""


@dataclass(frozen=True)
class Settings:
    """How to run: everything but what is run."""

    jobs: int | None = None
    seed: int = 0
    replications: int = 1
    precision: float | None = None
    warmup: int | None = None
    confidence: float = 0.95
    interpreted: bool = False
    widths: bool = False
    allow_unstable: bool = False
    sizes: str = "known"
    """Whether rules are told the sizes of jobs, or what is left of them on average given the work done."""
    capacity: Capacity | None = None
    """How the number of cores changes over time."""
    bound: str | None = None
    """`jobs` for the bound on what any policy could do with jobs that it knows, beside V*."""
    engine: str = DEFAULT_ENGINE
    """What simulates: cpu, gpu, auto (the GPU where there is one and it pays), or file.py:Name."""

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("replications", 1), ("seed", 0), ("warmup", 0)):
            value = getattr(self, name)
            # Only what has no default number may be left to us.
            if value is not None or name in {"replications", "seed"}:
                object.__setattr__(self, name, whole_number(name, value, least))
        if self.sizes not in SIZES:
            raise ParameterError(f"sizes must be known or unknown, got {self.sizes!r:.40}", "leave it out")
        if self.bound not in BOUNDS:
            raise ParameterError(f"bound must be jobs, got {self.bound!r:.40}", "leave it out for V* alone")
        if self.capacity is not None:
            object.__setattr__(self, "capacity", Capacity.of(self.capacity))
        if self.precision is not None and not 0.0 < self.precision < 1.0:
            raise ParameterError(
                f"precision must lie between 0 and 1, got {self.precision!r}", "0.01 means ±1 %"
            )

    @property
    def plain(self) -> bool:
        """Whether rules on class counts have all they need: a fixed number of cores, and known sizes."""
        return self.sizes == "known" and self.capacity is None

    def mean_cores(self, cores: float) -> float | None:
        """Cores there are on average, where their number changes."""
        return None if self.capacity is None else self.capacity.mean_cores(cores)

    @property
    def most_jobs(self) -> int:
        """Where the run ends at the latest."""
        if self.jobs is not None:
            return self.jobs
        return DEFAULT_JOBS if self.precision is None else MOST_JOBS


def default_jobs(workload: Workload) -> int:
    """A million, or more where a million would hardly fill the system."""
    return min(max(DEFAULT_JOBS, math.ceil(FILLINGS * workload.total_load)), MOST_JOBS)
