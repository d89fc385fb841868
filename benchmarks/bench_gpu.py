"""Events per second of the simulator on a GPU, and on one core of the same machine (paper workload).

    python -m benchmarks.bench_gpu [variants] [policy ...] [cores ...]

Every row is timed after the kernel is compiled and the system has filled, with all that a run needs:
launches, sums over groups, histograms. `share` is what is left of the speed of the kernel that keeps areas
only when one warp in sixteen keeps response times, slowdowns and histograms too, as runs do by default.
"""

import os
import sys
import time
import traceback

from benchmarks.device_shims import prepare

REPLACED = prepare()
# ruff: noqa: E402 - the shims come first
from malleable.contracts import Policy
from malleable.engine.gpu.availability import device_name
from malleable.engine.gpu.cohort import Options
from malleable.engine.gpu.kernels import device_kernel
from malleable.engine.gpu.run import GpuRun
from malleable.engine.run import Run
from malleable.model import paper_workload
from malleable.simulation import program
from malleable.sources import stream

SETTINGS = ((64, 0.25), (16, 0.25), (16, 0.7), (256, 0.25), (1024, 0.25))
POLICIES = ("wham", "equi", "greedy")
GOALS = {(16, 0.25): 30.0, (64, 0.25): 25.0, (16, 0.7): 15.0, (256, 0.25): 8.0, (1024, 0.25): 2.0}
HOPED = {(16, 0.25): 36.0, (64, 0.25): 30.0, (16, 0.7): 17.0, (256, 0.25): 20.0, (1024, 0.25): 9.0}
SECONDS = float(os.environ.get("BENCH_GPU_SECONDS", "1.0"))
BUDGET = float(os.environ.get("BENCH_GPU_BUDGET", "400"))
JOBS = float(os.environ.get("BENCH_GPU_JOBS", "0"))
"""Jobs of a run; 0 for about a second of what is hoped for."""


def timed(policy: str, cores: int, load: float, options: Options, **more) -> dict:
    """Events per second of one setting, and how long it took until the first record was there."""
    workload = paper_workload(cores, load)
    made = program(Policy.of(policy), workload, cores)
    jobs = int(JOBS or 0.5e9 * HOPED[cores, load])
    started = time.perf_counter()
    run = GpuRun(workload, cores, made, jobs=jobs, seed=1, name=policy, options=options, **more)
    run.extend(1)
    first = time.perf_counter() - started
    run.extend(jobs // 4)
    best = 0.0
    until = time.perf_counter() + SECONDS
    while True:
        before, begun = run.outcome().events, time.perf_counter()
        run.extend(run.jobs + jobs // 2)
        seconds = time.perf_counter() - begun
        best = max(best, (run.outcome().events - before) / seconds)
        if time.perf_counter() > until:
            break
    outcome = run.outcome()
    cost = float(outcome.records.area[20:].sum(axis=0) @ workload.holding_costs) / float(
        outcome.records.arrivals[20:].sum()
    )
    first_cohort = run.cohorts[-1]
    return {
        "events/s": best,
        "first": first,
        "cost": cost,
        "room": first_cohort.room,
        **first_cohort.placed._asdict(),
        **resources(run),
        "cohorts": len(run.cohorts),
        "replications": run.replications,
    }


def resources(run: GpuRun) -> dict:
    """Registers and bytes of local memory per thread of the kernels, where the device tells."""
    registers, memory = [], []
    try:
        for cohort in run.cohorts:
            kernel = device_kernel(cohort.specialisation())
            registers += kernel.get_regs_per_thread().values()
            memory += kernel.get_local_mem_per_thread().values()
    except Exception as error:  # noqa: BLE001 - the simulator has neither
        return {"registers": repr(error)[:60]}
    return {"registers": registers, "local bytes": memory}


def processor_rate(policy: str, cores: int, load: float) -> float:
    """Events per second of the processor's engine on one core."""
    workload = paper_workload(cores, load)
    made = program(Policy.of(policy), workload, cores)
    run = Run(workload, cores, made, jobs=1 << 24, source=stream(workload, 0), name=policy)
    run.extend(200_000)
    before, begun = run.outcome().events, time.perf_counter()
    run.extend(1_500_000)
    return (run.outcome().events - before) / (time.perf_counter() - begun)


def row(policy: str, cores: int, load: float) -> dict:
    """One line of the table; what fails says so."""
    found = {"policy": policy, "cores": cores, "load": load}
    lean = timed(policy, cores, load, Options(statistics=False))
    full = timed(policy, cores, load, Options(every=16))
    beside = processor_rate(policy, cores, load)
    return {
        **found,
        "registers": (lean["registers"], full["registers"]),
        "areas G/s": lean["events/s"] / 1e9,
        "statistics G/s": full["events/s"] / 1e9,
        "share": full["events/s"] / lean["events/s"],
        "goal": GOALS[cores, load],
        "CPU core G/s": beside / 1e9,
        "ratio": full["events/s"] / beside,
        "cost": full["cost"],
        "first call s": lean["first"],
        "room": full["room"],
        "cohorts": full["cohorts"],
    }


def run() -> list[dict]:
    """All rows, as far as the time goes; one that fails is told with its reason."""
    started = time.perf_counter()
    print(f"device: {device_name()}; stand-ins: {REPLACED or 'none'}", flush=True)
    rows = []
    wanted = sys.argv[1:]
    settings = [one for one in SETTINGS if str(one[0]) in wanted] or SETTINGS
    policies = [one for one in POLICIES if one in wanted] or POLICIES
    for cores, load in settings:
        for policy in policies:
            if time.perf_counter() - started > BUDGET:
                print(f"out of time before {policy} on {cores} cores at {load}", flush=True)
                return rows
            try:
                rows.append(row(policy, cores, load))
                print(rows[-1], flush=True)
            except Exception:  # noqa: BLE001 - the next row may do
                print(f"FAILED: {policy} on {cores} cores at {load}", flush=True)
                print(traceback.format_exc()[-1800:], flush=True)
    return rows


VARIANTS = (
    Options(statistics=False),
    Options(statistics=False, memory="local"),
    Options(statistics=False, registers=64),
    Options(statistics=False, registers=96),
    Options(statistics=False, hot=4),
    Options(statistics=False, hot=12),
    Options(every=16),
    Options(every=1),
)


def variants(settings) -> None:
    """Where marks stand, registers, and how many warps count in histograms: WHAM."""
    for cores, load in settings:
        for options in VARIANTS:
            shown = {"cores": cores, "load": load, "limit": options.registers, **options._asdict()}
            try:
                print({**shown, **timed("wham", cores, load, options)}, flush=True)
            except Exception:  # noqa: BLE001 - the next may do
                print(f"FAILED: {shown}", traceback.format_exc()[-600:], flush=True)


if __name__ == "__main__":
    if "variants" in sys.argv[1:]:
        variants(((64, 0.25), (256, 0.25)))
    else:
        run()
