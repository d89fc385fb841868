"""The questions people ask, one function each; workloads and policies may be given by name.

The command line calls these functions and no others. A workload is a `Workload`, the name of a built-in one,
the path of a TOML file, or `-` for standard input (`read_workload`). What a question needs is imported when
it is asked: `allocate` takes neither numba nor SciPy along.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from malleable import model
from malleable.contracts import Allocation, Capacity, Policy
from malleable.engine.enforcement import blame_policy, label
from malleable.errors import JobsError, ParameterError, did_you_mean
from malleable.model import Workload, checked_cores
from malleable.model.jobs import Jobs
from malleable.policies.base.asking import legal_allocation
from malleable.progress import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    from malleable.fitting import Fit, Measured, SizeFit
    from malleable.live.play import Played
    from malleable.model.job_list import JobList
    from malleable.paper.contracts import Effort
    from malleable.paper.reproduce import Reproduction
    from malleable.paper.workers import Report
    from malleable.planning import Explanation, Plan
    from malleable.replays import Replay
    from malleable.results import Comparison, Result
    from malleable.simulation.sweep import Swept
    from malleable.theory.fw_cam import FixedWidthPlan
    from malleable.theory.meanfield import MeanField
    from malleable.theory.price_path import JobsBound
    from malleable.theory.relaxed import Bound
    from malleable.traces import Study, Trace
    from malleable.traces.describing import FittedWorkload, TraceSummary


def read_workload(
    source: Workload | str | Path, cores: float | None = None, load: float | None = None
) -> Workload:
    """The workload that `source` stands for, with its arrival rates scaled to `load` on `cores` if given."""
    if cores is None:
        if load is not None:
            raise ParameterError("a load is the share of a number of cores", "give cores with it")
        return model.read_workload(source)
    cores = checked_cores(cores)
    return model.read_workload(source).at(cores, load)


def read_jobs(workload: Workload, source: str | Path) -> Jobs:
    """The jobs present, from a CSV or JSON file, or `-` for standard input."""
    from malleable.model import job_files  # noqa: PLC0415 - only needed to read

    return job_files.read_jobs(workload, source)


def read_trace(source: str | Path, format: str | None = None) -> Trace:  # noqa: A002 - the field's word
    """The jobs of a log: a file, plain or packed with gzip or zstd, a study of one, or - for standard input.

    `format` is one of `malleable list traces`; without it, the content says what it is.
    """
    from malleable import traces  # noqa: PLC0415 - only needed to read

    study = traces.read_study(source)
    return traces.read_trace(study.log, format or study.format)


def malleabilise(
    trace: Trace | str | Path, study: Study | str | Path | None = None, **changes: Any
) -> JobList:
    """The jobs of a log as jobs that can be resized, as a study assumes; `changes` are keys of the study.

    A log may be given by its file, which may be a study that names it.
    """
    from malleable import traces  # noqa: PLC0415 - ditto

    return traces.malleabilise(*_studied(trace, study, changes))


def replay(
    source: JobList | Trace | str | Path,
    cores: float | None = None,
    policies: str | Sequence[Policy | str] = "wham,easy,fcfs",
    *,
    study: Study | str | Path | None = None,
    bound: bool = True,
    baseline: str | None = None,
    shares: str | Sequence[float] | None = None,
    resample: int = 0,
    interpreted: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **changes: Any,
) -> Replay:
    """Every policy on the jobs of a log, the least that any schedule could cost, and who is to blame.

    `source` is a log, a study of one, or jobs made by `malleabilise`; `changes` are keys of the study.
    `cores` are by default those of the study or the log. `shares` (such as "0,50,100") replays the log as
    more and more of it becomes malleable; `resample` gives intervals from so many logs made of its blocks.
    """
    from malleable import replays, traces  # noqa: PLC0415 - ditto
    from malleable.model.job_list import JobList  # noqa: PLC0415 - ditto

    options: dict[str, Any] = {"bound": bound, "progress": progress}
    parts = replays.read_shares(shares) if isinstance(shares, str) else shares
    trace, assumed = None, None
    if isinstance(source, JobList):
        jobs = source
    else:
        trace, assumed = _studied(source, study, changes)
        cores = _machine_of(cores, assumed, trace)
        if cores is not None:
            jobs = traces.malleabilise(trace, assumed, cores=checked_cores(cores))
    cores = _known_machine(cores)
    found = replays.replay(
        jobs, cores, policies, baseline=baseline, resample=resample, seed=changes.get("seed") or 0,
        interpreted=interpreted, **options,
    )  # fmt: skip
    if parts is None:
        return found
    if trace is None or assumed is None:
        raise ParameterError("shares are of the jobs of a log", "give the log and not a list of its jobs")
    if found.interrupted:
        return found
    return found.with_shares(replays.share_curve(trace, cores, policies, parts, assumed, **options))


def report(found: Replay | Explanation | Plan, path: str | Path) -> Path:
    """Write a page about an answer: one HTML file that needs nothing else, for a screen, a phone or paper."""
    from malleable import plots, replays  # noqa: PLC0415 - ditto
    from malleable.reports import write_replay  # noqa: PLC0415 - ditto

    return write_replay(found, path) if isinstance(found, replays.Replay) else plots.write_page(found, path)


def _machine_of(cores: float | None, assumed: Study, trace: Trace) -> float | None:
    """The cores asked for, else those of the study, else those of the log."""
    if cores is not None:
        return checked_cores(cores)
    return assumed.cores or trace.machine


def _known_machine(cores: float | None) -> float:
    """How many cores there were, if that is known."""
    if cores is None:
        raise ParameterError(
            "the log does not say how many cores there were", "give their number: --cores 128"
        )
    return checked_cores(cores)


def broker_trace() -> Trace:
    """The jobs that the running broker remembers, as a log: the width of each is the mean over its run."""
    from malleable.live.broker.http_client import BrokerClient  # noqa: PLC0415 - ditto
    from malleable.traces.describing import trace_of_stays  # noqa: PLC0415 - ditto

    with BrokerClient() as broker:
        return trace_of_stays(broker.job_log(), float(time.localtime().tm_gmtoff))


def write_trace(trace: Trace, path: str | Path) -> Path:
    """Write a log as a plain CSV table with named columns, which `read_trace` reads."""
    from malleable.results import files  # noqa: PLC0415 - ditto
    from malleable.traces.describing import plain_text  # noqa: PLC0415 - ditto

    place = Path(path)
    files.put(place, plain_text(trace).encode())
    return place


def check_report(path: str | Path) -> None:
    """Raise an error if a report cannot be written there, before anything is computed."""
    from malleable.reports import check_place  # noqa: PLC0415 - ditto

    check_place(path)


def describe(
    source: Trace | str | Path,
    cores: float | None = None,
    format: str | None = None,  # noqa: A002 - ditto
) -> TraceSummary:
    """A log in numbers: jobs, span, load over time, widths, laws, cycles, users, and what was dropped."""
    from malleable import traces  # noqa: PLC0415 - ditto
    from malleable.traces import describing  # noqa: PLC0415 - ditto

    trace = source if isinstance(source, traces.Trace) else read_trace(source, format)
    return describing.describe(trace, None if cores is None else checked_cores(cores))


def fit_workload(
    source: JobList | Trace | str | Path,
    cores: float | None = None,
    policy: Policy | str = "wham",
    *,
    study: Study | str | Path | None = None,
    jobs: int = 200_000,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **changes: Any,
) -> FittedWorkload:
    """A stochastic workload fitted to a log, and how well it stands for it: simulated against replayed."""
    from malleable.traces import describing  # noqa: PLC0415 - ditto

    changes["seed"] = seed
    found = replay(source, cores, [policy], study=study, bound=False, progress=progress, **changes)
    one = found[found.baseline]
    return describing.fit_workload(
        found.jobs, found.cores, one.policy, one.cost, seed=seed or 0, count=jobs, progress=progress
    )


def _studied(
    source: Trace | str | Path, study: Study | str | Path | None, changes: Mapping[str, Any]
) -> tuple[Trace, Study]:
    """A log and what is assumed of its jobs; a file may be a study that names the log."""
    from malleable import traces  # noqa: PLC0415 - ditto

    given = {key: value for key, value in changes.items() if value is not None}
    if isinstance(source, traces.Trace):
        trace, study = source, traces.Study(log=source.name) if study is None else study
    else:
        trace, study = read_trace(source, given.get("format")), source if study is None else study
    assumed = study if isinstance(study, traces.Study) else traces.read_study(study)
    return trace, assumed.with_changes(**given)


def bound(
    workload: Workload | str | Path,
    cores: float,
    load: float | None = None,
    *,
    capacity: Capacity | str | Mapping[str, Any] | None = None,
) -> Bound:
    """The lower bound on the cost of any policy, and the widths, price and response times behind it.

    `capacity` says how many of the cores there are over time, such as `failures:nodes=8,up=100,down=5`.
    """
    from malleable.theory import relaxed  # noqa: PLC0415 - keeps `allocate` light

    cores = checked_cores(cores)
    described = read_workload(workload, cores, load)
    if capacity is None:
        return relaxed.bound(described, cores)
    known = Capacity.of(capacity)
    known.check_on(cores)
    described.check_widths(known.most_cores(cores))
    return relaxed.bound(described, cores, known.mean_cores(cores))


def bound_for_jobs(
    jobs: JobList,
    cores: float | Sequence[tuple[float, float]],
    **options: Any,
) -> JobsBound:
    """A lower bound on what any schedule of these jobs costs, even one that knows them all beforehand.

    `cores` is a number, or pairs (time, cores) where it changes. The result has the bound, the prices of a
    core over time that prove it, and what each job's own best schedule costs at these prices. `options`:
    `precision`, `seconds`, `cell_jobs`, `widest`, `threads`, `on_progress` (see `theory.price_path`).
    """
    from malleable.theory import price_path  # noqa: PLC0415 - keeps `allocate` light

    return price_path.bound_for_jobs(jobs, cores, **options)


def fixed_plan(
    workload: Workload | str | Path, cores: float, load: float | None = None, policy: Policy | str = "fw-cam"
) -> FixedWidthPlan:
    """The slots of every class under `fw-cam` or `fw-cam-repaired`: width, number, load and exact wait."""
    from malleable.policies.fw_cam import FwCam  # noqa: PLC0415 - keeps `allocate` light

    cores = checked_cores(cores)
    described, chosen = read_workload(workload, cores, load), Policy.of(policy)
    if not isinstance(chosen, FwCam):
        raise ParameterError(f"{label(policy, chosen)} has no fixed slots", "use fw-cam or fw-cam-repaired")
    return chosen.plan(described, cores)


def allocate(
    workload: Workload | str | Path,
    jobs: Jobs | Iterable[Mapping[str, Any]],
    cores: float,
    policy: Policy | str = "wham",
    *,
    integer: bool = False,
) -> Allocation:
    """Cores for each job present, in the order of the jobs, under `policy`.

    `Jobs` bring their own workload, whose classes must be those of `workload`. What the policy proposes is
    checked as the simulator does, and made to fit the widths that jobs can have; where no job is present, it
    is not asked.
    """
    cores = checked_cores(cores)
    present = _present(read_workload(workload), jobs)
    chosen = Policy.of(policy)
    if len(present) == 0:
        return Allocation(np.zeros(0), None)
    with blame_policy(chosen, label(policy, chosen)):
        return legal_allocation(chosen, present, cores, integer=integer)


def policy_notes(workload: Workload | str | Path, cores: float, policy: Policy | str) -> tuple[str, ...]:
    """What to know of a policy on a workload: that it steps back, say, or which one `auto` has chosen."""
    return Policy.of(policy).notes(read_workload(workload), checked_cores(cores))


def explain(
    workload: Workload | str | Path,
    jobs: Jobs | Iterable[Mapping[str, Any]],
    cores: float,
    policy: Policy | str = "wham",
    *,
    job: str | None = None,
    arriving: Mapping[str, Any] | str | None = None,
    integer: bool = False,
) -> Explanation:
    """Who has how many cores at one moment, what a core is worth to each, and who is next.

    The policy is asked again with one core more and one fewer; with `job`, without that job; with `arriving`,
    a row such as `{"class": "etl", "remaining": 2}` or `class=etl,remaining=2`, with one job more.
    """
    from malleable import planning  # noqa: PLC0415 - keeps `allocate` light

    cores = checked_cores(cores)
    described, chosen = read_workload(workload), Policy.of(policy)
    present = _present(described, jobs)
    row = planning.read_arrival(arriving) if isinstance(arriving, str) else arriving
    late = None if row is None else Jobs.from_rows(described, [{"id": "the new job", **row}])
    whole = integer or chosen.whole_cores
    found = planning.explain(
        lambda some, n: allocate(described, some, n, chosen, integer=integer),
        present, cores, policy=label(policy, chosen), job=job, arriving=late, whole=whole,
    )  # fmt: skip
    notes = chosen.notes(described, cores) if len(present) else ()
    return replace(found, words=(*found.words, *(f"{note}." for note in notes)))


def plan(
    source: Workload | JobList | Trace | str | Path,
    target: str | None = None,
    policy: str | Policy | Sequence[str | Policy] = "wham",
    *,
    cores: float | None = None,
    load: float | None = None,
    most: int | None = None,
    core_price: float | None = None,
    job_price: float | None = None,
    burst_price: float | None = None,
    growth: float | str | None = None,
    add: Workload | str | Path | None = None,
    halve: str | None = None,
    night: str | None = None,
    make_malleable: float | str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **study: Any,
) -> Plan:
    """The fewest cores that meet a target such as "cost < 3" or "p95(train) < 2h", and how sure that is.

    `source` is a workload, which is simulated, or a log (or a study of one, or given jobs), which is
    replayed; `study` are keys of the study. Of several policies (a list, or text with commas) the one that
    needs the fewest cores is taken. `cores` says how many there are now; `load` scales a workload's arrival
    rates, or a log's arrivals, to them.

    With `core_price`, money per hour of a core, and no target: the fewest cores on which one more costs more
    than it saves (of a log: that cost least), holding costs being money per hour, or `job_price` for every
    job. `burst_price` asks for how many hours of a log a rented core would be worth its price.

    What a change is worth in cores is found too: `growth` of the arrivals ("20%"), the classes of another
    workload (`add`), half the sequential part of a class (`halve`), a class of a log that comes by `night`,
    or a share of the rigid and moldable jobs that is made malleable.

    The plan looks up to `most` cores, and simulates `jobs` jobs per replication in its shortest runs.
    """
    from malleable import planning  # noqa: PLC0415 - ditto
    from malleable.model.job_list import JobList  # noqa: PLC0415 - ditto

    common: dict[str, Any] = {
        "most": most, "core_price": core_price, "job_price": job_price, "progress": progress,
    }  # fmt: skip
    wanted = planning.Changes(
        growth, halve, None if add is None else read_workload(add), night, make_malleable
    )
    given = {key: value for key, value in study.items() if value is not None}
    trace: Trace | None = None
    assumed: Study | None = None
    if isinstance(source, Workload) or not (isinstance(source, JobList) or planning.is_log(source)):
        planning.refuse_for_workloads({**given, "burst_price": burst_price})
        return planning.plan(
            read_workload(cast("Workload | str", source), cores, load), target, policy, cores=cores,
            changes=wanted, confidence=confidence, seed=seed, jobs=jobs, workers=workers, **common,
        )  # fmt: skip
    if isinstance(source, JobList):
        listed, machine = source, cores
    else:
        trace, assumed = _studied(source, None, {**given, "load": load, "seed": seed})
        machine = _machine_of(cores, assumed, trace)
        listed = _malleabilised(trace, assumed, machine)
    return planning.plan_log(
        listed, _known_machine(machine), target, policy,
        changes=wanted, remade=None if trace is None else partial(_malleabilised, trace, assumed, machine),
        burst_price=burst_price, **common,
    )  # fmt: skip


def _malleabilised(trace: Trace, study: Study | None, cores: float | None, **changes: Any) -> JobList:
    from malleable import traces  # noqa: PLC0415 - ditto

    return traces.malleabilise(trace, study, **{**({} if cores is None else {"cores": cores}), **changes})


def _present(workload: Workload, jobs: Jobs | Iterable[Mapping[str, Any]]) -> Jobs:
    if not isinstance(jobs, Jobs):
        return Jobs.from_rows(workload, jobs)
    if jobs.workload.class_names != workload.class_names:
        raise JobsError(
            f"the jobs are of the classes {', '.join(jobs.workload.class_names):.60}, "
            f"those of {workload.name} are {', '.join(workload.class_names):.60}",
            "make the jobs from this workload",
        )
    return jobs


def mean_field(
    workload: Workload | str | Path,
    cores: float,
    load: float | None = None,
    policy: Policy | str = "wham",
    **options: Any,
) -> MeanField:
    """Fixed point, stability, attractor study and 1/n correction of a class rule (see `theory.meanfield`)."""
    from malleable.theory import meanfield  # noqa: PLC0415 - keeps `allocate` light

    cores = checked_cores(cores)
    described, chosen = read_workload(workload, cores, load), Policy.of(policy)
    with blame_policy(chosen, label(policy, chosen)):
        return meanfield.mean_field(described, cores, chosen, **options)


def simulate(
    workload: Workload | str | Path,
    cores: float,
    policy: Policy | str | Callable[..., Any] = "wham",
    *,
    load: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
    replications: int = 1,
    precision: float | None = None,
    warmup: int | None = None,
    confidence: float = 0.95,
    interpreted: bool = False,
    widths: bool = False,
    allow_unstable: bool = False,
    sizes: str = "known",
    capacity: Capacity | str | Mapping[str, Any] | None = None,
    bound: str | None = None,
    engine: str = "cpu",
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    workers: int | None = None,
) -> Result:
    """Cost and response times of a policy, with intervals, beside the lower bound.

    With `precision` the run goes on until the relative half-width of the cost is met, up to `jobs` jobs.
    `progress(done, total)` is called with numbers of jobs (of tasks, on an executor of yours), and
    `progress=True` shows a bar. Replications are spread over `workers` processes, one per processor by
    default, or over `executor`.

    With `sizes="unknown"` a policy is told what is left of a job on average, given the work done; `capacity`
    says how many of the cores there are over time.

    `bound="jobs"` adds the bound for given jobs: what even a scheduler that knows all jobs beforehand must
    pay, averaged over streams of jobs (`bound_jobs` and `gap_jobs` of the result).

    `engine` is cpu, gpu, or auto: the GPU where there is one and the run is long enough.
    """
    from malleable import simulation  # noqa: PLC0415 - ditto

    with watched(progress, "jobs" if executor is None else "tasks") as told:
        return simulation.simulate(
            read_workload(workload), cores, policy,
            load=load, jobs=jobs, seed=seed, replications=replications, precision=precision, warmup=warmup,
            confidence=confidence, interpreted=interpreted, widths=widths, allow_unstable=allow_unstable,
            sizes=sizes, capacity=capacity, bound=bound, engine=engine,
            executor=executor, progress=told, workers=workers,
        )  # fmt: skip


def compare(
    workload: Workload | str | Path,
    cores: float | Sequence[float],
    policies: str | Sequence[Policy | str | Callable[..., Any]],
    *,
    load: float | Sequence[float] | None = None,
    baseline: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Comparison:
    """Several policies on the same jobs, at one or several numbers of cores and loads, with differences.

    `policies` is a list, or text with commas such as "wham,equi"; `settings` are those of `simulate`;
    differences are taken from the first policy, or from `baseline`, at the same number of cores and load.
    """
    from malleable import simulation  # noqa: PLC0415 - ditto

    with watched(progress, "jobs" if executor is None else "tasks") as told:
        return simulation.compare(
            read_workload(workload), cores, policies,
            load=load, baseline=baseline, executor=executor, progress=told, workers=workers, **settings,
        )  # fmt: skip


def sweep(
    settings: Iterable[tuple[Any, ...]],
    policies: str | Sequence[Policy | str],
    *,
    jobs: int = 1_000_000,
    seed: int = 0,
    engine: str = "auto",
    progress: Callable[[int, int], None] | bool | None = None,
) -> list[Swept]:
    """Costs of policies on many settings (workload, cores, and a load if wanted), with paired differences.

    On a GPU thousands of settings run side by side; elsewhere one after the other. Only costs are kept.
    Setting k has the jobs of seed + k, about `jobs` of them for every policy. `progress(done, total)` is told
    numbers of settings.
    """
    from malleable import simulation  # noqa: PLC0415 - ditto
    from malleable.catalog import split_policies  # noqa: PLC0415 - ditto

    chosen = split_policies(policies) if isinstance(policies, str) else list(policies)
    read = [(read_workload(one[0], *one[1:]), one[1]) for one in settings]
    with watched(progress, "settings") as told:
        return simulation.sweep(read, chosen, jobs=jobs, seed=seed, engine=engine, progress=told)


def play(
    workload: Workload | str | Path,
    cores: int,
    policies: str | Sequence[Policy | str],
    *,
    load: float | None = None,
    jobs: int = 500,
    speed: float | None = None,
    seed: int = 0,
    warmup: int | None = None,
    burn: bool = False,
    progress: Callable[[int, int], None] | bool | None = None,
) -> Played:
    """Policies on the live system, in real time, beside the simulator on the same jobs.

    Jobs sleep for as long as they would work, so there may be any number of cores; with `burn` they burn CPU
    time on the CPUs of this machine. `speed` is the units of model time that pass per second.
    """
    from malleable.catalog import split_policies  # noqa: PLC0415 - ditto
    from malleable.live import play as live  # noqa: PLC0415 - ditto

    chosen = split_policies(policies) if isinstance(policies, str) else policies
    with watched(progress) as told:
        return live.play(
            read_workload(workload), cores, chosen,
            jobs=jobs, speed=speed, load=load, seed=seed, warmup=warmup, burn=burn, progress=told,
        )  # fmt: skip


def fit_speedup(
    source: Any = None,
    family: str = "auto",
    *,
    times: Any = None,
    throughput: Any = None,
    row: str | None = None,
    seed: int = 0,
    replications: int = 200,
) -> Fit:
    """A speedup from measurements: a file, text such as "1@3600,2@1800", or `times` or `throughput`.

    `times` and `throughput` are `{cores: value}` or `{cores: [value, value, …]}`, or pairs (cores, value).
    `family` is hull, concave, amdahl, power, rooftop, usl, linear_power, or auto for the one that predicts
    best. `row` picks a curve of a file that holds several; `replications` make the bootstrap bands.
    """
    from malleable import fitting  # noqa: PLC0415 - ditto

    measured = fitting.as_measurements(source, times, throughput, row)
    return fitting.fit_speedup(measured, family, seed=seed, replications=replications)


def measure(
    command: Sequence[str],
    cores: Sequence[int],
    *,
    repeat: int = 5,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    group: Callable[[int | None], None] | None = None,
) -> Measured:
    """Run times of a command on several numbers of cores of this machine, kept in the file `out`.

    The command is told its cores by affinity, by the usual variables, and by `{cores}` in its arguments.
    `progress(done, total)` is called often, with numbers of runs; `group` is told the process group of each.
    """
    from malleable import fitting  # noqa: PLC0415 - ditto

    with watched(progress, "runs") as told:
        return fitting.measure(command, cores, repeat=repeat, out=out, progress=told, group=group)


def fit_sizes(source: Any, family: str = "auto", *, phases: int = 4) -> SizeFit:
    """A law of sizes from samples: a file with one number per line, or the numbers themselves.

    `family` is exponential, erlang, hyperexponential, coxian (by moments), phase_type (by EM, with `phases`
    phases), or auto for the one with the lowest BIC.
    """
    from malleable import fitting  # noqa: PLC0415 - ditto

    return fitting.fit_sizes(source, family, phases=phases)


def draw(
    found: Fit | SizeFit | Result | Comparison | TraceSummary | Explanation | Plan, path: str | Path
) -> Path:
    """A picture of what was found, as SVG, PNG or PDF by the ending of `path`."""
    from malleable import plots  # noqa: PLC0415 - ditto

    return plots.draw_file(plots.figure_of(found), path)


def check_picture(path: str | Path) -> None:
    """Raise the error that `draw` would: before what is drawn takes long to compute."""
    from malleable import plots  # noqa: PLC0415 - ditto

    plots.check_file(path)


def ray_executor(address: str) -> Executor:
    """Where `simulate` and `compare` may send their tasks: a Ray cluster (ray://host:port, auto or local)."""
    from malleable.execution.ray import RayExecutor  # noqa: PLC0415 - ditto

    return RayExecutor(address)


def reproduce(
    out: str | Path = "out/paper",
    effort: Effort | str = "normal",
    only: Iterable[str] | None = None,
    progress: Callable[[Report], None] | None = None,
    workers: int | None = None,
    engine: str = "cpu",
) -> Reproduction:
    """The paper's evaluation, computed anew into the folder `out`: figures, tables, verdicts and a page.

    `effort` is quick, normal or full; `only` names experiments to restrict it to. What is there and still
    true is left as it is. The work is spread over `workers` processes, one per processor by default;
    `engine` is that of `simulate`.
    """
    from malleable.paper import contracts, simulation_cells  # noqa: PLC0415 - ditto
    from malleable.paper import reproduce as paper  # noqa: PLC0415 - ditto

    if isinstance(effort, str) and effort not in contracts.EFFORTS:
        hint = did_you_mean(effort, contracts.EFFORTS)
        raise ParameterError(f"there is no effort {effort!r}", hint)
    chosen = contracts.EFFORTS[effort] if isinstance(effort, str) else effort
    with simulation_cells.simulated_by(engine):
        return paper.reproduce(out, chosen, only, progress, workers)


def listing(family: str) -> list[dict[str, Any]]:
    """What there is to choose from in a family: name, summary, and parameters or classes.

    Of policies also whether they are monotone: whether more jobs never widen any. None is for policies that
    look at more than class counts.
    """
    if family == "workloads":
        return model.workload_listing()
    from malleable.catalog import listing as kinds  # noqa: PLC0415 - ditto

    rows = kinds.listing(family)
    return [{**row, "monotone": _monotone(row["name"])} for row in rows] if family == "policies" else rows


def _monotone(policy: str) -> bool | None:
    """Asked on the paper's workload, where every policy does what it is known for."""
    from malleable.theory.monotonicity import monotone  # noqa: PLC0415 - ditto

    chosen = Policy.of(policy)
    if not chosen.by_price:
        # On the paper's workload it may stand back for another policy.
        return False
    known = monotone(chosen, model.paper_workload(), 8.0)
    return known and known.holds
