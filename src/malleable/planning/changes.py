"""Workloads that are a little different: more arrivals, one class more, less that is sequential."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from malleable.arrivals.poisson import Poisson
from malleable.errors import UnsupportedError, WorkloadError
from malleable.model import Workload
from malleable.model.widths import WHOLE, Widths

if TYPE_CHECKING:
    from malleable.model import JobClass

SEQUENTIAL = ("sequential", "contention")
"""What families of speedups call the part that no core makes faster."""


def grown(workload: Workload, share: float) -> Workload:
    """All arrival rates higher by a share."""
    return workload.scaled(1.0 + share)


def with_classes(workload: Workload, other: Workload) -> Workload:
    """The classes of another workload as well."""
    twice = sorted(set(workload.class_names) & set(other.class_names))
    if twice:
        raise WorkloadError(f"both workloads have a class {twice[0]!r}", "rename one of them")
    return Workload(workload.name, (*workload.classes, *other.classes))


def halved(workload: Workload, name: str) -> Workload:
    """A class with half its sequential part."""
    job_class = workload.classes[workload.index(name)]
    speedup = job_class.speedup
    part = next((key for key in SEQUENTIAL if hasattr(speedup, key)), None)
    if part is None:
        raise UnsupportedError(
            f"class {name!r} has a {speedup.kind} speedup, which has no sequential part",
            "give it an amdahl or usl speedup; `malleable fit` finds one",
        )
    faster = replace(speedup, **{part: 0.5 * float(getattr(speedup, part))})
    return _replaced(workload, name, (replace(job_class, speedup=faster),))


def made_malleable(workload: Workload, share: float) -> Workload:
    """A share of the jobs of each rigid or moldable class can be resized, on any whole width."""
    classes: list[JobClass] = []
    for one in workload.classes:
        if one.shape == "malleable":
            classes.append(one)
            continue
        if not one.arrivals.poisson:
            raise UnsupportedError(
                f"class {one.name!r} has {one.arrivals.kind} arrivals, which do not divide into two streams",
                "use poisson arrivals",
            )
        free = replace(
            one,
            name=f"{one.name} (malleable)",
            arrivals=Poisson(rate=share * one.arrivals.rate),
            shape="malleable",
            width=None,
            widths=one.widths if one.shape == "moldable" else Widths(WHOLE),
        )
        left = () if share == 1.0 else (replace(one, arrivals=one.arrivals.faster(1.0 - share)),)
        classes += [*left, free]
    if len(classes) == len(workload.classes) and all(one.shape == "malleable" for one in workload.classes):
        raise UnsupportedError(f"all jobs of {workload.name} are malleable already", "leave it out")
    return Workload(workload.name, tuple(classes))


def _replaced(workload: Workload, name: str, by: tuple[JobClass, ...]) -> Workload:
    classes = [by if one.name == name else (one,) for one in workload.classes]
    return replace(workload, classes=tuple(one for some in classes for one in some))
