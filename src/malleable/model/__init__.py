"""Job classes and workloads: frozen, validated, comparable, and readable from a TOML file.

System load ρ = Σ λ_i E[X_i] / n. Scaling to n cores and load ρ multiplies every arrival rate by the same
factor, so the mix of classes stays as it is; job sizes never change.
"""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.catalog.spec import Positive, Spec, validate
from malleable.contracts import Arrivals, Distribution, FloatArray, Speedup
from malleable.errors import MalleableError, ParameterError, WorkloadError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable


class ConditionWarning(UserWarning):
    """A class breaks a condition under which the paper proves its policies optimal."""


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


@dataclass(frozen=True)
class JobClass(Spec):
    """Jobs that arrive, speed up and matter alike."""

    name: str
    arrivals: Arrivals
    size: Distribution
    speedup: Speedup
    holding_cost: Positive = 1.0

    def check(self) -> None:
        if not self.name:
            raise ParameterError("must not be empty", path=("name",))
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


@dataclass(frozen=True)
class Workload:
    """Several job classes that share the cores."""

    name: str
    classes: tuple[JobClass, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if not self.classes:
            raise WorkloadError("a workload needs at least one class", "add a [[classes]] table")
        for position, job_class in enumerate(self.classes):
            if not isinstance(job_class, JobClass):
                raise WorkloadError(f"must be a JobClass, got {job_class!r:.60}", path=("classes", position))
            if self.class_names.index(job_class.name) != position:
                raise WorkloadError(
                    f"a second class is called {job_class.name!r}", path=("classes", position, "name")
                )
            for condition in job_class.broken_conditions():
                message = (
                    f"class {job_class.name!r}: {condition}; the paper's optimality proofs do not cover it"
                )
                warnings.warn(message, ConditionWarning, stacklevel=3)

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, in order."""
        return tuple(c.name for c in self.classes)

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
            raise WorkloadError(
                "a workload needs at least one class", "add a [[classes]] table", ("classes",)
            )
        classes = []
        for position, row in enumerate(rows):
            try:
                classes.append(_job_class(row, position))
            except MalleableError as error:
                raise error.within("classes", position) from None
        return cls(name, tuple(classes))

    def __str__(self) -> str:
        lines = [f"workload {self.name}: {len(self.classes)} classes, total load {self.total_load:.6g}"]
        lines += [
            f"  {c.name}: rate {c.arrivals.rate:.6g}, mean size {c.size.mean:.6g}, "
            f"{c.speedup.kind} speedup, holding cost {c.holding_cost:g}"
            for c in self.classes
        ]
        return "\n".join(lines)


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


def builtin_workloads() -> dict[str, Path]:
    """The workload files that come with the package, by name."""
    folder = Path(str(resources.files("malleable") / "workloads"))
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def load_workload(source: str | Path) -> Workload:
    """Read a workload: a built-in name such as `paper`, or a TOML file."""
    path = builtin_workloads().get(str(source), Path(source))
    try:
        text = path.read_bytes().decode("utf-8-sig")  # some editors mark UTF-8 with an invisible character
    except FileNotFoundError:
        hint = did_you_mean(str(source), [*builtin_workloads(), *(p.name for p in Path().glob("*.toml"))])
        raise WorkloadError(f"there is no workload or file {str(source)!r}", hint) from None
    except UnicodeDecodeError:
        raise WorkloadError(f"{source} is not a text file", "a workload is a TOML file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkloadError(f"cannot read {str(source)!r}: {reason}") from None
    return parse_workload(text, str(source), name=path.stem, folder=path.parent)


def parse_workload(
    text: str, source: str = "the input", *, name: str = "input", folder: Path | None = None
) -> Workload:
    """Read the text of a workload file; files that it names are relative to `folder`."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:  # not every ValueError is a TOMLDecodeError
        raise WorkloadError(f"{source} is not valid TOML: {error}", "a workload is a TOML file") from None
    if not document:
        raise WorkloadError(
            f"{source} is empty", "add a [[classes]] table; `malleable list workloads` shows examples"
        )
    document.setdefault("name", name)
    try:
        return Workload.from_dict(_anchored(document, folder or Path()))
    except MalleableError as error:
        raise WorkloadError(f"{source}: {error.sentence}", error.hint) from None
    except ValueError as error:  # a number with too many digits to be shown
        raise WorkloadError(f"{source}: {error}") from None


def _anchored(document: Any, folder: Path) -> Any:
    """Files that a workload names (measured sizes, a Python function) are relative to the workload's own."""
    if isinstance(document, list):
        return [_anchored(item, folder) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: str(folder / value)
        if key in {"file", "function"} and isinstance(value, str)
        else _anchored(value, folder)
        for key, value in document.items()
    }


def paper_workload(cores: float | None = None, load: float = 0.25) -> Workload:
    """The three classes of the paper's evaluation, at `load` on `cores` cores when given."""
    workload = load_workload("paper")
    return workload if cores is None else workload.at(cores, load)


def workload_listing() -> list[dict[str, Any]]:
    """The built-in workloads: name, summary and classes."""
    found = []
    for name in builtin_workloads():
        workload = load_workload(name)
        kinds = ", ".join(sorted({c.speedup.kind for c in workload.classes}))
        summary = f"{len(workload.classes)} classes ({kinds}), work for {workload.total_load:.4g} cores"
        found.append({"name": name, "summary": summary, "classes": list(workload.class_names)})
    return found
