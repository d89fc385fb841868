"""The questions people ask, one function each; workloads and policies may be given by name.

The command line calls these functions and no others. A workload is a `Workload`, the name of a built-in one,
the path of a TOML file, or `-` for standard input (`read_workload`). What a question needs is imported when
it is asked: `allocate` takes neither numba nor SciPy along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable import model
from malleable.contracts import Allocation, Capacity, Policy
from malleable.engine.enforcement import blame_policy, label
from malleable.errors import JobsError, ParameterError, did_you_mean
from malleable.model import Workload, checked_cores
from malleable.model.jobs import Jobs
from malleable.policies.base.legal_allocation import legal_allocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from malleable.fitting import Fit, Measured, SizeFit
    from malleable.live.play import Played
    from malleable.model.job_list import JobList
    from malleable.paper.contracts import Effort
    from malleable.paper.reproduce import Reproduction
    from malleable.paper.workers import Report
    from malleable.results import Comparison, Result
    from malleable.simulation.sweep import Swept
    from malleable.theory.fw_cam import FixedWidthPlan
    from malleable.theory.meanfield import MeanField
    from malleable.theory.relaxed import Bound
    from malleable.traces import Study, Trace


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

    if not isinstance(trace, traces.Trace):
        study = trace if study is None else study
        trace = read_trace(trace, changes.get("format"))
    assumed = study if study is None or isinstance(study, traces.Study) else traces.read_study(study)
    return traces.malleabilise(trace, assumed, **changes)


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
    engine: str = "cpu",
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> Result:
    """Cost and response times of a policy, with intervals, beside the lower bound.

    With `precision` the run goes on until the relative half-width of the cost is met, up to `jobs` jobs.
    `progress(done, total)` is called with numbers of jobs (of tasks, on an executor of yours). Replications
    are spread over `workers` processes, one per processor by default, or over `executor`.

    With `sizes="unknown"` a policy is told what is left of a job on average, given the work done; `capacity`
    says how many of the cores there are over time.

    `engine` is cpu, gpu, or auto: the GPU where there is one and the run is long enough.
    """
    from malleable import simulation  # noqa: PLC0415 - ditto

    return simulation.simulate(
        read_workload(workload), cores, policy,
        load=load, jobs=jobs, seed=seed, replications=replications, precision=precision, warmup=warmup,
        confidence=confidence, interpreted=interpreted, widths=widths, allow_unstable=allow_unstable,
        sizes=sizes, capacity=capacity, engine=engine, executor=executor, progress=progress, workers=workers,
    )  # fmt: skip


def compare(
    workload: Workload | str | Path,
    cores: float | Sequence[float],
    policies: str | Sequence[Policy | str | Callable[..., Any]],
    *,
    load: float | Sequence[float] | None = None,
    baseline: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Comparison:
    """Several policies on the same jobs, at one or several numbers of cores and loads, with differences.

    `policies` is a list, or text with commas such as "wham,equi"; `settings` are those of `simulate`;
    differences are taken from the first policy, or from `baseline`, at the same number of cores and load.
    """
    from malleable import simulation  # noqa: PLC0415 - ditto

    return simulation.compare(
        read_workload(workload), cores, policies,
        load=load, baseline=baseline, executor=executor, progress=progress, workers=workers, **settings,
    )  # fmt: skip


def sweep(
    settings: Iterable[tuple[Any, ...]],
    policies: str | Sequence[Policy | str],
    *,
    jobs: int = 1_000_000,
    seed: int = 0,
    engine: str = "auto",
    progress: Callable[[int, int], None] | None = None,
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
    return simulation.sweep(read, chosen, jobs=jobs, seed=seed, engine=engine, progress=progress)


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
    progress: Callable[[int, int], None] | None = None,
) -> Played:
    """Policies on the live system, in real time, beside the simulator on the same jobs.

    Jobs sleep for as long as they would work, so there may be any number of cores; with `burn` they burn CPU
    time on the CPUs of this machine. `speed` is the units of model time that pass per second.
    """
    from malleable.catalog import split_policies  # noqa: PLC0415 - ditto
    from malleable.live import play as live  # noqa: PLC0415 - ditto

    chosen = split_policies(policies) if isinstance(policies, str) else policies
    return live.play(
        read_workload(workload), cores, chosen,
        jobs=jobs, speed=speed, load=load, seed=seed, warmup=warmup, burn=burn, progress=progress,
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
    progress: Callable[[int, int], None] | None = None,
    group: Callable[[int | None], None] | None = None,
) -> Measured:
    """Run times of a command on several numbers of cores of this machine, kept in the file `out`.

    The command is told its cores by affinity, by the usual variables, and by `{cores}` in its arguments.
    `progress(done, total)` is called often, with numbers of runs; `group` is told the process group of each.
    """
    from malleable import fitting  # noqa: PLC0415 - ditto

    return fitting.measure(command, cores, repeat=repeat, out=out, progress=progress, group=group)


def fit_sizes(source: Any, family: str = "auto", *, phases: int = 4) -> SizeFit:
    """A law of sizes from samples: a file with one number per line, or the numbers themselves.

    `family` is exponential, erlang, hyperexponential, coxian (by moments), phase_type (by EM, with `phases`
    phases), or auto for the one with the lowest BIC.
    """
    from malleable import fitting  # noqa: PLC0415 - ditto

    return fitting.fit_sizes(source, family, phases=phases)


def draw(found: Fit | SizeFit, path: str | Path) -> Path:
    """A picture of a fit beside its data, as SVG, PNG or PDF by the ending of `path`."""
    from malleable import plots  # noqa: PLC0415 - ditto

    return plots.draw_file(plots.fit_figure(found), path)


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
