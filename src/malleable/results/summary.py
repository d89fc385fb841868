"""From the records of a run to its `Result`, and from several results to one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import InfeasibleError
from malleable.model import checked_cores
from malleable.results.class_result import ClassResult, number
from malleable.results.errors import ResultError
from malleable.results.notes import Doubts
from malleable.results.result import Result, Status
from malleable.results.versions import installed_versions
from malleable.statistics import (
    Estimate,
    Estimates,
    Stability,
    Totals,
    Warmup,
    estimate,
    find_warmup,
    length,
    percentiles,
    reached,
    shared_regression,
    stability,
    totals,
)
from malleable.statistics.percentiles import kept_histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from malleable.engine.records import Records
    from malleable.model import Workload
    from malleable.statistics import Regression
    from malleable.theory.relaxed import Bound


def summarise(
    runs: Sequence[Records],
    *,
    workload: Workload,
    cores: float,
    policy: str,
    seed: int | Sequence[int],
    jobs: int,
    warmup: int | None = None,
    confidence: float = 0.95,
    events: int = 0,
    seconds: float = 0.0,
    status: str = Status.COMPLETE,
    precision: float | None = None,
    controls: bool = True,
    keep_records: bool = True,
    versions: Mapping[str, str] | None = None,
    whole_cores: bool = False,
    blocking: bool = False,
    mean_cores: float | None = None,
    pool_loads: Sequence[float] = (),
    policy_notes: Sequence[str] = (),
    shared: Regression | None = None,
) -> Result:
    """Everything that the records of one run, or of independent replications, say.

    `warmup` is in jobs, out of each run; MSER-5 finds it when it is None. `controls=False` is for jobs that
    were not drawn from the workload's laws, such as a trace. `status` is how the run ended as far as the
    caller knows; a run that turns out unstable or short of `precision` is labelled so here. `whole_cores` and
    `blocking` are the policy's (see `Policy`): the one makes the bound tighter, the other matters for heavy
    tails. `mean_cores` is how many of the cores there were on average, where their number changed.
    `pool_loads` are the loads of the classes' own pools, where the policy has any. `policy_notes` are what
    the policy has to say of itself on this workload; they stand behind the doubts. `shared` is the regression
    of policies that are compared.
    """
    cores = checked_cores(cores)
    lowest, steady = _bound(workload, cores, mean_cores)
    tight, name, long = None, None, None
    if lowest is not None:
        tight, name = lowest.tightest(whole_cores=whole_cores)
        long = length(workload, cores, sum(c.jobs for c in lowest.classes), jobs, len(runs), pools=pool_loads)
        steady = stability(runs, far_too_short=long.refused)
    left_out = find_warmup(runs, workload, warmup) if shared is None else shared.warmup
    estimates = estimate(
        runs, workload, left_out, confidence=confidence, controls=controls, length=long, shared=shared
    )
    sums = totals(runs, left_out.cuts, workload, cores)
    doubts = Doubts(workload, left_out, estimates, sums, steady, long, tight, blocking, controls)
    return Result(
        policy=policy,
        workload=workload,
        cores=cores,
        load=workload.load(cores),
        seeds=(seed,) if isinstance(seed, int) else tuple(seed),
        jobs=jobs,
        warmup=left_out.jobs,
        cost=estimates.cost,
        bound=None if lowest is None else lowest.bound,
        bound_tight=tight,
        bound_name=name,
        whole_cores=whole_cores,
        blocking=blocking,
        mean_cores=mean_cores,
        pool_loads=tuple(pool_loads),
        utilisation=sums.utilisation,
        effective_load=sums.effective_load,
        overload=sums.overload,
        classes=_classes(runs, left_out, workload, estimates, sums),
        events=events,
        seconds=seconds,
        stable=steady.stable,
        status=_status(status, steady, estimates.cost, precision),
        notes=(*doubts.notes(), *policy_notes),
        policy_notes=tuple(policy_notes),
        replications=len(runs),
        confidence=confidence,
        batches=estimates.batches,
        controls=estimates.controls,
        precision=precision,
        warmup_given=warmup,
        versions=installed_versions() if versions is None else versions,
        records=tuple(runs) if keep_records else (),
    )


def merge(results: Iterable[Result]) -> Result:
    """One result from independent replications of the same setting under different seeds."""
    results = list(results)
    if not results:
        raise ResultError("there is nothing to merge", "give at least one result")
    for a, b in pairwise(results):
        for name in ("policy", "cores", "confidence", "warmup_given", "workload"):
            if getattr(a, name) != getattr(b, name):
                shown = "" if name == "workload" else f": {getattr(a, name)} and {getattr(b, name)}"
                hint = "merge replications of one setting; compare different ones"
                raise ResultError(f"cannot merge results of different {name}{shown}", hint)
    seeds = [seed for result in results for seed in result.seeds]
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise ResultError(f"two results have the seed {twice}, so they are not independent", "change a seed")
    first = results[0]
    if first.workload is None or not all(result.records for result in results):
        raise ResultError("a result without its records or workload cannot be merged", "keep the records")
    return _summed_up(results, first.workload)


def estimated_together(results: Sequence[Result], *, controls: bool = True) -> tuple[Result, ...]:
    """Results of one setting, the costs of those on the same jobs by one regression.

    A result whose queue grows, or whose warm-up does not end, is left as it is.
    """
    found = list(results)
    for places in _on_the_same_jobs(found):
        mine = [found[i] for i in places]
        workload = mine[0].workload
        if workload is None:
            continue
        warmups = [find_warmup(one.records, workload, one.warmup_given) for one in mine]
        settled = [i for i, warmup in enumerate(warmups) if warmup.converging]
        if len(settled) < 2:
            continue
        regression = shared_regression(
            mine[0].records, [warmups[i] for i in settled], [mine[i] for i in settled]
        )
        for i in settled:
            if (mine[i].warmup, mine[i].batches, mine[i].controls.number) != (
                regression.warmup.jobs,
                regression.batches,
                regression.controls,
            ):
                found[places[i]] = _summed_up([mine[i]], workload, controls=controls, shared=regression)
    return tuple(found)


def _on_the_same_jobs(results: Sequence[Result]) -> list[list[int]]:
    """Which of the results have seen the same jobs, to the last."""
    groups: list[list[int]] = []
    for i, result in enumerate(results):
        if result.stable and result.records and result.workload is not None:
            mine = next((group for group in groups if _same_jobs(results[group[0]], result)), None)
            if mine is None:
                groups.append([i])
            else:
                mine.append(i)
    return groups


def _same_jobs(a: Result, b: Result) -> bool:
    alike = all(getattr(a, name) == getattr(b, name) for name in ("seeds", "confidence", "warmup_given"))
    return (
        alike
        and a.workload == b.workload
        and len(a.records) == len(b.records)
        and all(np.array_equal(x.arrivals, y.arrivals) for x, y in zip(a.records, b.records, strict=True))
    )


def _summed_up(
    results: Sequence[Result],
    workload: Workload,
    *,
    controls: bool = True,
    shared: Regression | None = None,
) -> Result:
    """One result from the records of several of the same setting."""
    first = results[0]
    alike = all(result.bound_jobs == first.bound_jobs for result in results)
    made = summarise(
        [run for result in results for run in result.records],
        workload=workload,
        cores=first.cores,
        policy=first.policy,
        seed=[seed for result in results for seed in result.seeds],
        jobs=sum(result.jobs for result in results),
        warmup=first.warmup_given,
        confidence=first.confidence,
        events=sum(result.events for result in results),
        seconds=sum(result.seconds for result in results),
        status=_joint_status(results),
        precision=first.precision,
        versions=first.versions,
        whole_cores=first.whole_cores,
        blocking=first.blocking,
        mean_cores=first.mean_cores,
        pool_loads=first.pool_loads,
        policy_notes=first.policy_notes,
        controls=controls,
        shared=shared,
    )
    return replace(made, bound_jobs=first.bound_jobs if alike else None)


def _bound(workload: Workload, cores: float, mean_cores: float | None) -> tuple[Bound | None, Stability]:
    from malleable.theory.relaxed import bound  # noqa: PLC0415 - the market is only needed here

    try:
        return bound(workload, cores, mean_cores), Stability(stable=True)
    except InfeasibleError as error:
        return None, Stability(stable=False, reason=error.problem)


def _classes(
    runs: Sequence[Records], left_out: Warmup, workload: Workload, estimates: Estimates, sums: Totals
) -> tuple[ClassResult, ...]:
    response = kept_histogram(runs, left_out.cuts, "response_histogram")
    slowdown = kept_histogram(runs, left_out.cuts, "slowdown_histogram")
    # Widths are not kept by segment; the warm-up's share of the work is in them.
    width = np.sum([run.width_histogram for run in runs], axis=0)
    return tuple(
        ClassResult(
            name=name,
            response_time=estimates.response_times[i],
            response=percentiles(response[i]),
            mean_slowdown=float(sums.slowdown[i]),
            slowdown=percentiles(slowdown[i]),
            width=percentiles(width[i]),
            jobs=int(sums.departures[i]),
            present=float(sums.present[i]),
            little=float(sums.little[i]),
            resizes=number(float(sums.resizes[i])),
        )
        for i, name in enumerate(workload.class_names)
    )


def _status(given: str, steady: Stability, cost: Estimate, precision: float | None) -> str:
    if given != Status.COMPLETE:
        return given
    if not steady.stable:
        return Status.UNSTABLE
    if steady.reason:
        return Status.TOO_SHORT
    return Status.COMPLETE if reached(cost, precision) else Status.NOT_REACHED


def _joint_status(results: Sequence[Result]) -> str:
    """Only what the records cannot tell is carried over: that a run was stopped."""
    stopped = any(result.status == Status.INTERRUPTED for result in results)
    return Status.INTERRUPTED if stopped else Status.COMPLETE
