"""A run on a GPU: many replications of the same setting side by side, cut into the same records.

Replications are put together in groups. The records of a group are sums over its replications, stretch by
stretch; groups are independent of one another, so intervals are made from them as from replications. All
replications start empty: how much to leave out is seen from their average, as ever.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.engine.gpu import layout as L  # noqa: N812
from malleable.engine.gpu.backends import default_backend
from malleable.engine.gpu.cohort import FIRST_QUEUE, Cohort, Options, joined
from malleable.engine.gpu.jobs import common_arrays, policy_error
from malleable.engine.gpu.record_rows import group_records, grouped, pooled
from malleable.engine.gpu.setting import MOST_ROWS, count_table, make_setting
from malleable.engine.rule_interface import BINS, COUNTS, DONE, GROW, Program
from malleable.engine.run import SEGMENTS, Outcome
from malleable.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.engine.gpu.backends import Backend
    from malleable.model import Workload

GROUPS = 32
"""Groups of replications, each of which counts as one when intervals are made."""
RECORDS = 100
"""Records of a run of the length first asked for."""
LEAST_JOBS = 4096
"""Jobs per replication at least, unless the caller knows better: of intervals from replications of 750 jobs,
92 % covered that should have been 95 %."""
COPIES = 64
"""Copies of the histograms, so that few threads count in the same place."""
WARP = 32
MANY, EVERY = 4096, 16
"""From so many replications on, one warp in sixteen keeps statistics of single jobs."""
LONGEST_QUEUE = 512
"""Room for jobs that wait at first, at most."""
MORE_ROWS = 1.5
KEY_BITS = (1 << 62) - 1
"""Seeds that differ in these bits give different jobs."""


class GpuRun:
    """A run that can be continued: `extend(jobs)` as often as needed, `outcome()` at any time."""

    def __init__(
        self,
        workload: Workload,
        cores: float,
        program: Program,
        *,
        jobs: int,
        source: Any = None,  # noqa: ARG002 - the device draws the jobs of the seed itself
        seed: int | None = None,
        name: str = "",
        interpreted: bool = False,
        widths: bool = False,
        sizes_known: bool = True,
        changes: Any = None,
        least_jobs: int = LEAST_JOBS,
        replications: int | None = None,
        options: Options | None = None,
        backend: Backend | None = None,
        rows: int = MOST_ROWS,
    ) -> None:
        label = name or "this policy"
        plain = sizes_known and changes is None
        refused = _refused(label, program, seed, interpreted=interpreted, widths=widths, plain=plain)
        if refused or program.sees != COUNTS:
            raise UnsupportedError(
                f"the GPU engine cannot do this: {refused}", "use --engine cpu (engine='cpu')"
            )
        self.name = name
        self.backend = default_backend() if backend is None else backend
        self.setting = make_setting(workload, cores, program, rows=rows)
        self._rows_allowed = rows
        self.replications = replications or replications_for(jobs, least_jobs, self.backend.most_replications)
        self.groups = min(GROUPS, self.replications)
        each = -(-jobs // self.replications)
        self._stride = max(1, each // RECORDS)
        self._cuts = [max(1, int(share * each / self._stride)) for share in SEGMENTS]
        self.options = options or Options(rule_on_device=self.setting.cut, every=_every(self.replications))
        copies = min(COPIES, -(-self.replications // WARP)) if self.options.statistics else 1
        self._common = common_arrays(self.setting, self.backend, int(seed or 0) & KEY_BITS, copies)
        self._histogram = self.backend.upload(np.zeros(len(workload.classes) * 2 * BINS, dtype=np.int64))
        self.cohorts = self._first_cohorts(_queue_room(self.setting.load))
        self._rows: list[Any] = []
        self._segment_of: list[int] = []
        self._segments: list[Any] = []
        self._taken = self.jobs = 0
        self.seconds = 0.0
        self.interrupted = False
        self.exhausted = False

    def _first_cohorts(self, queue_room: int) -> list[Cohort]:
        """The replications that keep statistics, and those that keep areas only."""
        numbers = np.arange(self.replications)
        warp = numbers // WARP
        counts = warp % self.options.every == 0 if self.options.statistics else np.zeros(len(numbers), bool)
        made = []
        for chosen, statistics in ((numbers[counts], True), (numbers[~counts], False)):
            if chosen.size:
                options = self.options._replace(statistics=statistics)
                cohort = Cohort.fresh(
                    self.setting, self.backend, options, self._common, chosen, queue_room=queue_room
                )
                cohort.aligned = True
                made.append(cohort)
        return made

    def extend(self, jobs: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulate up to `jobs` jobs in all, to the next record; Ctrl-C stops between two records."""
        started = time.perf_counter()
        try:
            while self.jobs < jobs:
                self._record()
                if progress is not None:
                    progress(self.jobs)
        except KeyboardInterrupt:
            self.interrupted = True
        self.seconds += time.perf_counter() - started

    def _record(self) -> None:
        """Let all replications take the jobs of one more record."""
        last = self._taken + self._stride
        found, settled = [], False
        for stream, cohort in enumerate(self.cohorts):
            cohort.advance(last, stream=stream)
        for cohort in list(self.cohorts):
            partial, trouble = self._sums(cohort)
            found.append(partial)
            if trouble:
                found += self._settle(cohort, last)
                settled = True
        if settled:
            # Some jobs were seen present before and after a move; they count where they are now.
            found = [self._without_present(partial) for partial in found]
            self._join()
            found += [self._sums(cohort)[0] for cohort in self.cohorts]
        if self.options.statistics:
            self.backend.fold(self._common["histogram"], self._histogram)
        self._rows.append(found)
        self._segment_of.append(len(self._segments))
        self._taken = last
        self.jobs = last * self.replications
        if len(self._rows) in self._cuts:
            self._segments.append(self._counts_so_far())
        if len(self._rows) == 2 * RECORDS:
            self._coarsen()

    def _sums(self, cohort: Cohort) -> tuple[Any, int]:
        """Sums over groups since the last call, and jobs present; the largest status."""
        sums, whole = cohort.arrays["sums"], cohort.arrays["whole"]
        if cohort.aligned:
            return self.backend.sum_groups(sums, whole, self.groups)
        # Not all replications are here, so a replication's group does not follow from its column.
        numbers = self.backend.download(cohort.arrays["numbers"])
        return grouped(self.backend, sums, whole, numbers % self.groups, self.groups)

    def _without_present(self, partial: Any) -> Any:
        counted = self._on_host(partial).copy()
        counted[-self.setting.classes :] = 0.0
        return counted

    def _on_host(self, partial: Any) -> Any:
        return partial if isinstance(partial, np.ndarray) else self.backend.download(partial)

    def _join(self) -> None:
        """Put cohorts of the same rooms together, so that there are few; the first keep their columns."""
        first = [cohort for cohort in self.cohorts if cohort.aligned]
        kept: dict[tuple[bool, int, int], Cohort] = {}
        for cohort in self.cohorts:
            if not cohort.aligned:
                alike = cohort.options.statistics, cohort.room, cohort.queue_room
                kept[alike] = joined(kept[alike], cohort) if alike in kept else cohort
        self.cohorts = [*first, *(one for one in kept.values() if one.remaining().size)]

    def _settle(self, cohort: Cohort, last: int) -> list[Any]:
        """Give replications that stopped what they need, until all have come to the end of the record."""
        found: list[Any] = []
        waiting = [cohort]
        while waiting:
            one = waiting.pop()
            statuses, grown = one.outgrown()
            wrong = np.flatnonzero((statuses != DONE) & (statuses != GROW))
            if wrong.size:
                if (statuses[wrong] != L.OUTSIDE).any():
                    first = wrong[statuses[wrong] != L.OUTSIDE][0]
                    raise policy_error(self.setting, one, int(first), int(statuses[first]))
                self._enlarge_table(one)
                again = one
            else:
                again = one.take_out(grown)
                self.cohorts.append(again)
            again.advance(last)
            partial, trouble = self._sums(again)
            found.append(partial)
            if trouble:
                waiting.append(again)
        return found

    def _enlarge_table(self, cohort: Cohort) -> None:
        """Reach to the states that replications got to, where the rule does not run on the device."""
        whole = self.backend.download(cohort.arrays["whole"])
        reached = whole[L.WHOLE + L.PRESENT :: L.COUNTERS].max(axis=1)
        limits = np.maximum(self.setting.table.limits, (MORE_ROWS * reached).astype(np.int64) + 1)
        if np.prod(limits + 1.0) > self._rows_allowed:
            self._rule_to_device()
            return
        table = count_table(self.setting.program, self.setting.cores, self.setting.encoded, limits)
        object.__setattr__(self.setting, "table", table)
        self._common["speeds"] = self.backend.upload(table.rows)
        self._common["limits"] = self.backend.upload(table.limits)

    def _rule_to_device(self) -> None:
        """Let the rule itself decide beyond the table from now on."""
        for cohort in self.cohorts:
            cohort.ask_rule()

    def _coarsen(self) -> None:
        """Join neighbouring records, so that a run that goes on and on keeps a bounded number of them."""
        rows = self._summed()
        joined_rows = rows[::2] + rows[1::2]
        m = self.setting.classes
        joined_rows[:, -m:] = rows[1::2, -m:]
        self._rows = [[row[:, None, :]] for row in joined_rows]
        self._segment_of = self._segment_of[::2]
        self._stride *= 2
        self._cuts = []

    def _summed(self) -> Any:
        """(records, fields, groups)."""
        rows = []
        for index, parts in enumerate(self._rows):
            one = np.sum([self._on_host(part).sum(axis=1) for part in parts], axis=0)
            rows.append(one)
            self._rows[index] = [one[:, None, :]]
        fields = L.CLASS_SUMS * self.setting.classes + L.MACHINE_SUMS + self.setting.classes
        return np.array(rows).reshape(-1, fields, self.groups)

    def _counts_so_far(self) -> Any:
        counts = self.backend.download(self._histogram).astype(float)
        return counts.reshape(self.setting.classes, 2, BINS)

    def outcome(self) -> Outcome:
        """Everything recorded so far."""
        rows = self._summed()
        so_far = np.array([*self._segments, self._counts_so_far()])
        histograms = np.diff(so_far, axis=0, prepend=np.zeros_like(so_far[:1]))
        groups = group_records(rows, self.setting.workload.mean_sizes, self._segment_of, histograms)
        records = pooled(groups)
        events = round(float((records.arrivals + records.departures).sum()))
        together = self.replications // self.groups
        return Outcome(
            records, self.jobs, events, self.seconds, self.interrupted, groups, together, self.backend.name
        )


def _refused(
    label: str, program: Any, seed: int | None, *, interpreted: bool, widths: bool, plain: bool
) -> str:
    """What of a run is for the processor's engine only; empty if nothing is."""
    if program.sees != COUNTS:
        return f"{label} looks at single jobs"
    if not plain:
        return "cores that change, or sizes that are not known"
    if seed is None:
        return "jobs that are given, not drawn"
    return "--interpreted" if interpreted else "--widths" if widths else ""


def replications_for(jobs: int, least: int, most: int) -> int:
    """As many as fill the device, unless the run is too short for so many; the same for every policy."""
    wanted = max(1, min(most, jobs // least))
    return wanted - wanted % GROUPS if wanted >= GROUPS else wanted


def _every(replications: int) -> int:
    """Which warps keep statistics: all, unless there are so many that some will do for percentiles."""
    return EVERY if replications >= MANY else 1


def _queue_room(load: float) -> int:
    """Room for the jobs that nearly always suffices, unless the load is high."""
    likely = 24.0 / max(1.0 - load, 0.01)
    return int(min(max(likely, FIRST_QUEUE), LONGEST_QUEUE))
