"""What one run, or several replications of it, says: a frozen value with everything needed to redo it.

`to_dict` is the JSON document of `malleable simulate`; `save` writes it with the records beside it. Numbers
that do not exist (the end of an interval from a single batch, the bound of an infeasible load) are null in
JSON and infinite, NaN or None here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.records import Records
from malleable.model import Workload
from malleable.results import data_frames, files
from malleable.results.class_result import ClassResult, interval, number, read_interval, read_number
from malleable.results.errors import ResultError
from malleable.statistics import Controls, Estimate, reached

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from malleable.contracts import FloatArray

UNCHANGED = (
    *("policy", "cores", "load", "jobs", "warmup", "bound", "stable", "status", "replications", "confidence"),
    *("batches", "precision", "warmup_given", "events", "seconds", "versions"),
)
"""Fields that a document holds as they are."""


class Status(StrEnum):
    """How the run ended; anything but complete is shown with its number."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    NOT_REACHED = "precision not reached"
    TOO_SHORT = "too short"
    UNSTABLE = "finite horizon (unstable)"


@dataclass(frozen=True, eq=False)
class Result:
    """Cost and response times of a policy on a workload, with their intervals, bound and provenance."""

    policy: str
    workload: Workload | None = field(repr=False)
    """None only when loaded from a file whose workload could not be written (a Python function)."""
    cores: float
    load: float
    seeds: tuple[int, ...]
    jobs: int
    """Jobs simulated, the warm-up included, over all replications."""
    warmup: int
    """Jobs left out, over all replications."""
    cost: Estimate
    """Mean holding cost per job."""
    bound: float | None
    """V*, below which no policy lies; None where the load is infeasible."""
    utilisation: float
    effective_load: float
    overload: float
    """Share of time with more jobs than cores."""
    classes: tuple[ClassResult, ...]
    events: int
    seconds: float
    stable: bool
    status: str = Status.COMPLETE
    notes: tuple[str, ...] = ()
    """What to know before trusting the numbers, one sentence each."""
    replications: int = 1
    confidence: float = 0.95
    batches: int = 0
    controls: Controls = field(default_factory=Controls)
    precision: float | None = None
    """The relative half-width asked for."""
    warmup_given: int | None = None
    """Jobs to leave out of each replication, when not left to MSER-5."""
    bound_tight: float | None = None
    """The tightest bound known for the policy, to which `gap` is measured."""
    bound_name: str | None = None
    """What that bound assumes."""
    bound_jobs: Estimate | None = None
    """A lower bound for every policy, one that knows all jobs beforehand included; None if not asked for."""
    whole_cores: bool = False
    """Whether the policy gives whole cores only."""
    blocking: bool = False
    """Whether large jobs can keep others waiting under the policy."""
    mean_cores: float | None = None
    """Cores there were on average, where their number changed."""
    pool_loads: tuple[float, ...] = ()
    """Loads of the classes' own pools, where the policy has any: the fullest says how long a run must be."""
    policy_notes: tuple[str, ...] = ()
    """Those of the notes that are the policy's own."""
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)
    records: tuple[Records, ...] = field(default=(), repr=False)
    """What it was made from, one for each replication, if kept."""

    @property
    def seed(self) -> int:
        """The seed; of merged results the first."""
        return self.seeds[0]

    @property
    def gap(self) -> float | None:
        """By which share the cost lies above the tightest lower bound known."""
        return None if self.bound_tight is None else self.cost.mean / self.bound_tight - 1.0

    @property
    def gap_jobs(self) -> Estimate | None:
        """By which share the cost lies above `bound_jobs`, with the noise of both."""
        if self.bound_jobs is None:
            return None
        ratio = self.cost.mean / self.bound_jobs.mean
        noise = ratio * math.hypot(self.cost.relative_half_width, self.bound_jobs.relative_half_width)
        return Estimate(ratio - 1.0, ratio - 1.0 - noise, ratio - 1.0 + noise)

    @property
    def events_per_second(self) -> float | None:
        """Speed of the simulation."""
        return self.events / self.seconds if self.seconds > 0.0 else None

    @property
    def precision_reached(self) -> bool:
        """Whether the relative half-width asked for was met."""
        return reached(self.cost, self.precision)

    def jobs_over_time(self, replication: int = 0) -> tuple[FloatArray, FloatArray]:
        """Times, and the jobs of each class present at them (times, classes), one for each record."""
        if not self.records:
            raise ResultError("this result was made without keeping its records", "run with them kept")
        run = self.records[replication]
        return np.cumsum(run.duration), run.present

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `malleable simulate`."""
        return {
            "policy": self.policy,
            "cores": self.cores,
            "load": self.load,
            "seed": self.seed,
            "jobs": self.jobs,
            "warmup": self.warmup,
            "cost": interval(self.cost),
            "bound": self.bound,
            "gap": number(self.gap),
            "utilisation": number(self.utilisation),
            "overload": number(self.overload),
            "classes": [c.to_dict() for c in self.classes],
            "events_per_second": self.events_per_second,
            "stable": self.stable,
            "status": str(self.status),
            "notes": list(self.notes),
            "effective_load": number(self.effective_load),
            "workload": self.workload.name if self.workload else None,
            "replications": self.replications,
            "seeds": list(self.seeds),
            "confidence": self.confidence,
            "batches": self.batches,
            "control_variates": {
                "used": self.controls.used,
                "number": self.controls.number,
                "variance_reduction": self.controls.variance_reduction,
            },
            "precision": self.precision,
            "precision_reached": self.precision_reached,
            "warmup_given": self.warmup_given,
            "events": self.events,
            "seconds": self.seconds,
            "versions": dict(self.versions),
            "bound_tight": self.bound_tight,
            "bound_name": self.bound_name,
            "bound_jobs": None if self.bound_jobs is None else interval(self.bound_jobs),
            "gap_jobs": None if self.gap_jobs is None else interval(self.gap_jobs),
            "whole_cores": self.whole_cores,
            "blocking": self.blocking,
            "mean_cores": self.mean_cores,
            "pool_loads": [number(load) for load in self.pool_loads],
        }

    def document(self) -> dict[str, Any]:
        """`to_dict` and the workload itself: all that `from_dict` needs."""
        return {**self.to_dict(), "workload_document": files.workload_document(self.workload)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], records: tuple[Records, ...] = ()) -> Result:
        """Read what `document` wrote."""
        measured = ("utilisation", "overload", "effective_load")
        numbers: dict[str, Any] = {key: read_number(document[key]) for key in measured}
        controls = document["control_variates"]
        return cls(
            **{key: document[key] for key in UNCHANGED},
            **numbers,
            workload=files.read_workload(document["workload_document"]),
            seeds=tuple(document["seeds"]),
            cost=read_interval(document["cost"]),
            classes=tuple(map(ClassResult.from_dict, document["classes"])),
            notes=tuple(document["notes"]),
            controls=Controls(controls["number"], controls["variance_reduction"]),
            # Files from before there was a tighter bound have V* alone.
            bound_tight=document.get("bound_tight", document["bound"]),
            bound_name=document.get("bound_name"),
            bound_jobs=None if document.get("bound_jobs") is None else read_interval(document["bound_jobs"]),
            whole_cores=document.get("whole_cores", False),
            blocking=document.get("blocking", False),
            mean_cores=document.get("mean_cores"),
            pool_loads=tuple(read_number(load) for load in document.get("pool_loads", ())),
            records=records,
        )

    def save(self, path: str | Path) -> Path:
        """Write `path` (.json) and the records beside it (.npz); returns the path of the document."""
        return files.write(path, self.document(), [self.records])

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """Read what `save` wrote, equal to what was saved (`load` is the system load)."""
        return files.read(path, lambda document, groups: cls.from_dict(document, groups[0]))

    @staticmethod
    def merge(results: Iterable[Result]) -> Result:
        """One result from independent replications of the same setting under different seeds."""
        from malleable.results.summary import merge  # noqa: PLC0415 - it makes results, so it imports this

        return merge(results)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per class; numbers of the whole run are repeated."""
        return data_frames.frame(data_frames.rows(self.to_dict()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return (
            self.to_dict() == other.to_dict()
            and self.workload == other.workload
            and files.same_records(self.records, other.records)
        )

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        beside = "no bound"
        if self.gap is not None:
            side = "above" if self.gap >= 0.0 else "below"
            beside = f"{abs(self.gap):.2%} {side} the bound {self.bound_tight:.6g}"
        text = f"{self.policy} on {self.cores:g} cores at load {self.load:.4g}: cost {self.cost}, {beside}"
        ending = "" if self.status == Status.COMPLETE and self.stable else f" [{self.status}]"
        return f"{text}{ending}"
