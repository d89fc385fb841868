"""A study: what is assumed of the jobs of a log, so that the same question can be asked again.

It stands as a small TOML file next to the log; every key but `log` may be left out:

    log = "nasa.swf.gz"
    cores = 128
    classes = "width"
    speedup = "amdahl:sequential=0.05"
    malleable = 0.5

    [speedups]
    bert = "bert-scalability.csv"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge

from malleable.catalog.spec import Count, NonNegative, Positive, Probability, Spec
from malleable.errors import MalleableError, ParameterError, TraceError, did_you_mean

Kinds = Literal["auto", "none", "user", "group", "application", "queue", "width", "length"]
Table = Mapping[str, Any]


@dataclass(frozen=True)
class Study(Spec):
    """How the jobs of a log become malleable, moldable and rigid jobs of a few classes."""

    kind: ClassVar[str] = "a study"
    hint: ClassVar[str] = "the how-to page 'Replay a Slurm log' shows the keys of a study"

    log: str = ""
    format: str | None = None
    cores: Annotated[float, Ge(1)] | None = None
    """How many cores there are: wider jobs are left out, and a load is a share of them."""
    classes: Kinds = "auto"
    most_classes: Count = 8
    """Of those with the most core-seconds; the others are one class together."""
    speedup: Any = "amdahl:sequential=0.05"
    """A rule, a table with a kind, a `Speedup`, a file of measurements, or a folder with one per class."""
    speedups: Any = field(default_factory=dict)
    """The same for single classes."""
    malleable: Probability | None = None
    """The share of the jobs that are malleable; None: what the log says, and all where it is silent."""
    moldable: Probability = 0.0
    choose: Literal["jobs", "users", "widest", "longest"] = "jobs"
    """Who is malleable first: jobs or users drawn by the seed, the widest or the longest jobs."""
    seed: Annotated[int, Ge(0)] = 0
    widths: Any = "any"
    """The widths of malleable and moldable jobs, as in a workload file."""
    pause: NonNegative = 0.0
    """Seconds without progress at every resize."""
    load: Positive | None = None
    """Arrivals are closer together, or farther apart, until this is the load of `cores`."""
    durations: Any = None
    """Run times for a log without: seconds, seconds by class, or "estimates"."""
    weights: Any = field(default_factory=dict)
    """`{"class": {name: weight}, "user": {name: weight}}`; those of the log are kept for the others."""
    estimates: Literal["log", "truth"] = "log"

    def check(self) -> None:
        if (self.malleable or 0.0) + self.moldable > 1.0:
            shares = f"{self.malleable:g} and {self.moldable:g}"
            raise ParameterError(
                f"the shares of malleable and moldable jobs are {shares}", "at most 1 in all"
            )
        if self.load is not None and self.cores is None:
            raise ParameterError("a load is the share of a number of cores", "give cores with it", ("load",))
        for name in ("speedups", "weights"):
            if not isinstance(getattr(self, name), Mapping):
                raise ParameterError("must be a table of names", f"write [{name}] above it", (name,))
        for column, table in self.weights.items():
            if column not in {"class", "user"} or not isinstance(table, Mapping):
                hint = "write [weights.class] or [weights.user], and name = weight below it"
                raise ParameterError(f"weights are by class or user, got {column!r:.40}", hint, ("weights",))

    def with_changes(self, **changes: Any) -> Self:
        """The same with some of it changed; what is None stays."""
        given = {key: value for key, value in changes.items() if value is not None}
        known = [one.name for one in fields(self)]
        for key in given:
            if key not in known:
                raise ParameterError(f"a study has no key {key!r}", did_you_mean(key, known))
        return replace(self, **given)

    def to_toml(self) -> str:
        """The text of a study file."""
        import tomli_w  # noqa: PLC0415 - only needed to write

        defaults = type(self)()
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return tomli_w.dumps(
            {
                key: value.to_dict() if isinstance(value, Spec) else value
                for key, value in plain.items()
                if value is not None and value != getattr(defaults, key)
            }
        )


def read_study(file: str | Path) -> Study:
    """The study of a file: its keys if it is TOML, and otherwise nothing but that the file is the log.

    A log and files of measurements that a study names are relative to its folder.
    """
    if Path(file).suffix.lower() != ".toml":
        return Study(log=str(file))
    try:
        document = tomllib.loads(Path(file).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise TraceError(f"there is no file {str(file)!r}", "give a log, or a study of one") from None
    except OSError as error:
        raise TraceError(f"cannot read {str(file)!r}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{file} is not valid TOML: {error}", "a study is a TOML file") from None
    if "log" not in document:
        raise TraceError(f"{file} names no log", 'add log = "FILE" to the study')
    try:
        return Study.from_parameters(_anchored(document, Path(file).parent))
    except MalleableError as error:
        raise TraceError(f"{file}: {error.sentence}", error.hint) from None


def _anchored(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The document with its files taken from the folder of the study."""

    def placed(value: Any) -> Any:
        there = folder / value if isinstance(value, str) and value else None
        return str(there) if there is not None and there.exists() else value

    found = {**document, "log": placed(document["log"])}
    if "speedup" in found:
        found["speedup"] = placed(found["speedup"])
    if isinstance(found.get("speedups"), Mapping):
        found["speedups"] = {name: placed(value) for name, value in found["speedups"].items()}
    return found
