"""The jobs present at one moment, as arrays: what every policy is asked about.

Columns: class, remaining size (work left, in time on one core), weight (holding cost of the class unless
given), age (time since arrival), cores held now, size (work at arrival; what is left unless given), restarts
(how often the job was resized so far). Jobs may bring their own speedup, shape and widths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import FloatArray, IntArray, Speedup
from malleable.errors import JobsError, MalleableError, did_you_mean
from malleable.model.job_rows import check_range, in_range, read_row
from malleable.model.job_type import JobType
from malleable.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["IntArray", "Jobs"]

NUMERIC = ("class_index", "remaining", "weight", "age", "held", "size", "restarts")
"""The columns of numbers."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs present. `order` (earlier arrivals first) breaks every tie."""

    workload: Workload
    class_index: IntArray
    remaining: FloatArray
    weight: FloatArray
    age: FloatArray
    held: FloatArray
    size: FloatArray
    restarts: FloatArray
    ids: tuple[str, ...]
    """Names: those of the file, of the broker, or a number in order of arrival that a job keeps for life."""
    own_speedups: tuple[Speedup, ...] | None = None
    own_weights: bool = False
    own_types: tuple[JobType, ...] | None = None
    """What each job is, where some bring a speedup, a shape or widths of their own."""

    @classmethod
    def of(
        cls,
        workload: Workload,
        classes: Sequence[str] | Sequence[int] | IntArray,
        remaining: Sequence[float] | FloatArray,
        *,
        weight: Sequence[float] | FloatArray | None = None,
        age: Sequence[float] | FloatArray | None = None,
        held: Sequence[float] | FloatArray | None = None,
        size: Sequence[float] | FloatArray | None = None,
        restarts: Sequence[float] | FloatArray | None = None,
        ids: Sequence[str] | None = None,
        speedups: Sequence[Any] | None = None,
        limits: Sequence[Mapping[str, Any]] | None = None,
    ) -> Jobs:
        """Build from columns; classes by name or by position in the workload.

        `limits` has a table per job with any of the keys shape, width and widths of a class; what is not
        given is as in its class.
        """
        index = _class_index(workload, classes)
        count = len(index)

        def column(name: str, values: Any, default: FloatArray | None) -> FloatArray:
            if values is None and default is not None:
                return default
            try:
                array = np.asarray(values, dtype=float)
            except (TypeError, ValueError):
                raise JobsError(f"the column {name!r} must hold numbers only") from None
            if array.shape != (count,):
                raise JobsError(f"the column {name!r} has shape {array.shape} for {count} jobs")
            bad = np.flatnonzero(~in_range(name, array))
            if len(bad):
                row = int(bad[0])
                check_range(f"job {ids[row]!r}" if ids is not None else f"job {row}", name, float(array[row]))
            return array

        if ids is not None:
            if len(ids) != count:
                raise JobsError(f"there are {len(ids)} ids for {count} jobs")
            ids = tuple(map(str, ids))
            _check_unique(ids)
        if speedups is not None and len(speedups) != count:
            raise JobsError(f"there are {len(speedups)} speedups for {count} jobs")
        if limits is not None and len(limits) != count:
            raise JobsError(f"there are {len(limits)} tables of limits for {count} jobs")
        own = None if speedups is None else tuple(map(Speedup.of, speedups))
        names = tuple(map(str, range(count))) if ids is None else tuple(ids)
        left, none = column("remaining", remaining, None), np.zeros(count)
        return cls(
            workload=workload,
            class_index=index,
            remaining=left,
            weight=column("weight", weight, workload.holding_costs[index]),
            age=column("age", age, none),
            held=column("cores", held, none),
            size=np.maximum(column("size", size, left), left),
            restarts=column("restarts", restarts, none),
            ids=names,
            own_speedups=own,
            own_weights=weight is not None,
            own_types=own_types(workload, index, own, limits, names),
        )

    @classmethod
    def from_rows(cls, workload: Workload, rows: Iterable[Mapping[str, Any]]) -> Jobs:
        """Build from rows with the keys id, class, remaining and those of `job_rows` that may be left out."""
        try:
            table = list(rows)
        except TypeError:
            raise JobsError(f"must be rows, got {rows!r:.60}", "give a list of tables") from None
        read = [read_row(number, row, workload.class_names) for number, row in enumerate(table)]
        costs = dict(zip(workload.class_names, workload.holding_costs.tolist(), strict=True))

        def column(values: list[float | None], default: list[float]) -> list[float] | None:
            """The values with defaults for those not given; None if none is."""
            if all(value is None for value in values):
                return None
            return [other if value is None else value for value, other in zip(values, default, strict=True)]

        nothing = [0.0] * len(read)
        return cls.of(
            workload,
            [row.name for row in read],
            [row.remaining for row in read],
            weight=column([row.weight for row in read], [costs[row.name] for row in read]),
            age=column([row.age for row in read], nothing),
            held=column([row.cores for row in read], nothing),
            size=column([row.size for row in read], nothing),
            restarts=column([row.restarts for row in read], nothing),
            ids=[row.id for row in read],
            limits=[row.limits for row in read] if any(row.limits for row in read) else None,
        )

    def only(self, positions: IntArray) -> Jobs:
        """Some of the jobs, in the order of their positions."""

        def some(values: Sequence[Any] | None) -> Any:
            return None if values is None else tuple(values[int(j)] for j in positions)

        return replace(
            self,
            **{name: getattr(self, name)[positions] for name in NUMERIC},
            ids=some(self.ids),
            own_speedups=some(self.own_speedups),
            own_types=some(self.own_types),
        )

    def joined(self, later: Jobs) -> Jobs:
        """These jobs and others of the same workload behind them."""
        _check_unique(ids := (*self.ids, *later.ids))
        own = self.own_types is not None or later.own_types is not None
        fast = self.own_speedups is not None or later.own_speedups is not None
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(later, name)]) for name in NUMERIC
        }
        return replace(
            self,
            **columns,
            ids=ids,
            own_speedups=(*_speedups(self), *_speedups(later)) if fast else None,
            own_weights=self.own_weights or later.own_weights,
            own_types=(*_types(self), *_types(later)) if own else None,
        )

    def __len__(self) -> int:
        return len(self.class_index)

    @cached_property
    def speedups(self) -> tuple[Speedup, ...]:
        """The distinct speedups; `speedup_index` says which one a job has."""
        return self.workload.speedups if self.own_speedups is None else self.own_speedups

    @cached_property
    def speedup_index(self) -> IntArray:
        """Position of each job's speedup in `speedups`."""
        return self.class_index if self.own_speedups is None else np.arange(len(self), dtype=np.intp)

    @cached_property
    def order(self) -> IntArray:
        """Job positions by arrival: oldest first, rows as given where ages are equal."""
        return np.argsort(-self.age, kind="stable")

    def by(self, index: FloatArray) -> IntArray:
        """Job positions by decreasing index, earlier arrivals first among equals."""
        order = self.order
        return order[np.argsort(-index[order], kind="stable")]


def own_types(
    workload: Workload,
    index: IntArray,
    speedups: Sequence[Speedup] | None,
    limits: Sequence[Mapping[str, Any]] | None,
    ids: Sequence[str],
) -> tuple[JobType, ...] | None:
    """What each job is, where some bring something of their own; None where their classes say it all."""
    if speedups is None and limits is None:
        return None
    types = [workload.job_types[i] for i in index.tolist()]
    if speedups is not None:
        types = [replace(one, speedup=speedup) for one, speedup in zip(types, speedups, strict=True)]
    for j, own in enumerate(limits or ()):
        if own:
            try:
                types[j] = types[j].limited(**own)
            except MalleableError as error:
                raise JobsError(f"job {ids[j]!r}: {error.sentence}", error.hint) from None
    return tuple(types)


def _types(jobs: Jobs) -> tuple[JobType, ...]:
    """What each job is, whether it brought that along or not."""
    types = jobs.workload.job_types
    return jobs.own_types or tuple(types[i] for i in jobs.class_index.tolist())


def _speedups(jobs: Jobs) -> tuple[Speedup, ...]:
    return jobs.own_speedups or tuple(jobs.workload.speedups[i] for i in jobs.class_index.tolist())


def _class_index(workload: Workload, classes: Any) -> IntArray:
    if len(classes) and isinstance(classes[0], str):
        positions = {name: i for i, name in enumerate(workload.class_names)}
        try:
            return np.fromiter((positions[str(name)] for name in classes), dtype=np.intp, count=len(classes))
        except KeyError as error:
            name = error.args[0]
            raise JobsError(
                f"the workload has no class {name!r}", did_you_mean(str(name), positions)
            ) from None
    index = np.asarray(classes) if len(classes) else np.empty(0, dtype=np.intp)
    if not np.issubdtype(index.dtype, np.integer):
        raise JobsError("classes must be names or whole numbers", "give their positions in the workload")
    if index.size and not (index.min() >= 0 and index.max() < len(workload.classes)):
        raise JobsError(f"class positions must lie between 0 and {len(workload.classes) - 1}")
    return index.astype(np.intp, copy=False)


def _check_unique(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(job for job in ids if job in seen or seen.add(job))  # type: ignore[func-returns-value]
        raise JobsError(f"the id {twice!r} is used twice", "give every job its own id")
