"""Workloads: several job classes that share the cores. Frozen, validated, comparable.

System load ρ = Σ λ_i E[X_i] / n. Scaling to n cores and load ρ multiplies every arrival rate by the same
factor, so the mix of classes stays as it is; job sizes never change.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.spec import Positive, validate
from malleable.errors import MalleableError, ParameterError, WorkloadError, did_you_mean
from malleable.model.job_class import JobClass

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Speedup
    from malleable.model.job_type import JobType


class ConditionWarning(UserWarning):
    """A class breaks a condition under which the paper proves its policies optimal."""


@dataclass(frozen=True)
class Workload:
    """Several job classes that share the cores."""

    name: str
    classes: tuple[JobClass, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if not self.classes:
            raise WorkloadError("a workload needs at least one class", "add a [[classes]] table")
        names: set[str] = set()
        for position, job_class in enumerate(self.classes):
            if not isinstance(job_class, JobClass):
                raise WorkloadError(f"must be a JobClass, got {job_class!r:.60}", path=("classes", position))
            if job_class.name in names:
                raise WorkloadError(
                    f"a second class is called {job_class.name!r}", path=("classes", position, "name")
                )
            names.add(job_class.name)
            for condition in job_class.broken_conditions():
                message = (
                    f"class {job_class.name!r}: {condition}; the paper's optimality proofs do not cover it"
                )
                warnings.warn(message, ConditionWarning, stacklevel=3)

    @classmethod
    def of_known(cls, name: str, classes: tuple[JobClass, ...]) -> Workload:
        """A workload of classes that were made from those of another one, and are not checked again."""
        made = object.__new__(cls)
        made.__dict__.update(name=name, classes=classes)
        return made

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, in order."""
        return tuple(c.name for c in self.classes)

    @cached_property
    def job_types(self) -> tuple[JobType, ...]:
        """The classes without their arrivals and sizes."""
        return tuple(c.job_type for c in self.classes)

    @cached_property
    def rates(self) -> FloatArray:
        """Arrival rates λ_i."""
        return np.array([c.arrivals.rate for c in self.classes])

    @cached_property
    def loads(self) -> FloatArray:
        """Work that arrives per unit of time, λ_i E[X_i]."""
        return np.array([c.load for c in self.classes])

    @cached_property
    def holding_costs(self) -> FloatArray:
        """Costs c_i of keeping one job for one unit of time."""
        return np.array([c.holding_cost for c in self.classes])

    @cached_property
    def mean_sizes(self) -> FloatArray:
        """Mean sizes E[X_i]."""
        return np.array([c.size.mean for c in self.classes])

    @cached_property
    def speedups(self) -> tuple[Speedup, ...]:
        """The speedup of each class."""
        return tuple(c.speedup for c in self.classes)

    @cached_property
    def plain(self) -> bool:
        """Whether all jobs take any width, at any time, for free: the paper's jobs."""
        return all(one.plain for one in self.job_types)

    @cached_property
    def restricted(self) -> bool:
        """Whether some class cannot run on every number of cores."""
        return not all(one.allowed_widths.unrestricted for one in self.job_types)

    def check_widths(self, cores: float) -> None:
        """Raise an error if jobs of some class cannot run on any number of cores up to this."""
        for one in self.job_types:
            one.widths_on(cores)

    @property
    def total_rate(self) -> float:
        """λ = Σ λ_i."""
        return float(self.rates.sum())

    @property
    def total_load(self) -> float:
        """Σ λ_i E[X_i]: the least number of cores that could ever keep up."""
        return float(self.loads.sum())

    def load(self, cores: float) -> float:
        """System load ρ on `cores` cores."""
        return self.total_load / checked_cores(cores)

    def effective_load(self, cores: float, widths: FloatArray) -> float:
        """Σ λ_i E[X_i] k_i/s_i(k_i) / n: the share of the cores in use when class i runs on k_i cores."""
        usage = [float(k / s(k)) for k, s in zip(widths, self.speedups, strict=True)]
        return float(self.loads @ np.array(usage)) / checked_cores(cores)

    def scaled(self, factor: float) -> Workload:
        """All arrival rates multiplied by `factor`."""
        factor = validate(Positive, factor)
        return replace(
            self, classes=tuple(replace(c, arrivals=c.arrivals.faster(factor)) for c in self.classes)
        )

    def at(self, cores: float, load: float | None = None) -> Workload:
        """The same mix at system load `load` on `cores` cores; the rates as they are when load is None."""
        cores = checked_cores(cores)
        if load is None:
            return self
        try:
            load = validate(Positive, load)
        except MalleableError as error:
            hint = "give the share of the cores that is kept busy: more than 0 and, to be stable, less than 1"
            raise ParameterError(error.problem, hint, ("load",)) from None
        return self.scaled(load * cores / self.total_load)

    def index(self, name: str) -> int:
        """Position of the class called `name`."""
        try:
            return self.class_names.index(name)
        except ValueError:
            raise WorkloadError(
                f"no class is called {name!r}", did_you_mean(name, self.class_names)
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The workload as the document that `from_dict` reads."""
        return {"name": self.name, "classes": [c.to_dict() for c in self.classes]}

    def to_toml(self) -> str:
        """The workload as the text of a workload file."""
        import tomli_w  # noqa: PLC0415 - only needed to write

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Workload:
        """Read a document; errors carry the path of the key they are about."""
        name, classes = _read_document(document)
        return cls(name, classes)

    def __str__(self) -> str:
        lines = [f"workload {self.name}: {len(self.classes)} classes, total load {self.total_load:.6g}"]
        lines += [
            f"  {c.name}: rate {c.arrivals.rate:.6g}, mean size {c.size.mean:.6g}, "
            f"{c.speedup.kind} speedup, holding cost {c.holding_cost:g}"
            for c in self.classes
        ]
        return "\n".join(lines)


def _read_document(document: Mapping[str, Any]) -> tuple[str, tuple[JobClass, ...]]:
    """Name and classes of a document."""
    if not isinstance(document, Mapping):
        raise WorkloadError(f"must be a table, got {document!r:.60}", "give name and classes")
    unknown = set(document) - {"name", "classes"}
    if unknown:
        key = min(map(str, unknown))
        raise WorkloadError(f"unknown key {key!r}", did_you_mean(key, ["name", "classes"]))
    name, rows = document.get("name", "workload"), document.get("classes")
    if not isinstance(name, str):
        raise WorkloadError(f"must be a string, got {name!r:.60}", path=("name",))
    if not isinstance(rows, list) or not rows:
        raise WorkloadError("a workload needs at least one class", "add a [[classes]] table", ("classes",))
    classes = []
    for position, row in enumerate(rows):
        try:
            classes.append(_job_class(row, position))
        except MalleableError as error:
            raise error.within("classes", position) from None
    return name, tuple(classes)


def _job_class(row: Any, position: int) -> JobClass:
    if not isinstance(row, dict):
        raise ParameterError(f"must be a table, got {row!r:.60}")
    return JobClass.from_parameters({"name": f"class-{position + 1}", **row})


def checked_cores(cores: Any) -> float:
    """The number of cores as a float: at least 1, not NaN, not infinite."""
    try:
        number = float(cores)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"cores must be a number, got {cores!r:.60}") from None
    if not 1.0 <= number < math.inf:
        raise ParameterError(
            f"cores must be at least 1 and finite, got {cores!r:.60}", "give the number of cores n ≥ 1"
        )
    return number
