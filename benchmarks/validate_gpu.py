"""Whether the GPU engine is right, on the GPU that is there: one line per claim, OK or NOT OK, and a count.

    python -m benchmarks.validate_gpu [quick]

Each part stands by itself; one that fails prints why and the next goes on.
"""

import concurrent.futures
import functools
import multiprocessing
import os
import platform
import sys
import time
import traceback

from benchmarks.device_shims import prepare

REPLACED = prepare()
# ruff: noqa: E402 - the shims come first
import numpy as np
import scipy
from scipy import special

from malleable import simulate
from malleable.contracts import Distribution, Policy
from malleable.engine.gpu.availability import device_name
from malleable.engine.gpu.backends import Processor, default_backend
from malleable.engine.gpu.cohort import Options
from malleable.engine.gpu.jobs import departures as device_departures
from malleable.engine.gpu.laws import encode_laws
from malleable.engine.gpu.run import GpuRun
from malleable.engine.gpu.samples import left_on_device, sampled
from malleable.engine.run import departures
from malleable.model import Workload, paper_workload
from malleable.results import summarise
from malleable.simulation import program
from malleable.sources import Chunk
from malleable.theory.queues import mmc

QUICK = "quick" in sys.argv[1:]
JOBS = int(float(os.environ.get("VALIDATE_GPU_JOBS", "4e9")))
SAMPLES = int(float(os.environ.get("VALIDATE_GPU_SAMPLES", "1e8")))
LOOKED_AT = 1_000_000
"""Order statistics at which distribution functions are compared."""
RUNS = int(os.environ.get("VALIDATE_GPU_RUNS", "1000"))
FIRST_SEED = int(os.environ.get("VALIDATE_GPU_SEED", "0"))
WORKERS = int(os.environ.get("VALIDATE_GPU_WORKERS", "8"))
EXACT = (
    ("wham", 16, 0.2400331),
    ("greedy", 16, 0.2414230),
    ("equi", 16, 0.2440912),
    ("wham", 128, 0.1695505),
    ("greedy", 128, 0.1711420),
    ("equi", 128, 0.1845563),
    ("fw-cam:beta=0.8", 64, 0.33994747),
    ("fw-cam:beta=0.8", 1024, 0.20212179),
)
LAWS = (
    {"kind": "exponential", "rate": 5.0},
    {"kind": "erlang", "stages": 4, "mean": 2.0},
    {"kind": "coxian", "rates": [3.0, 1.0, 0.2], "probabilities": [0.7, 0.25]},
    {"kind": "lognormal", "mean": 1.5, "sigma": 0.6},
    {"kind": "weibull", "shape": 0.7, "mean": 2.0},
    {"kind": "pareto", "shape": 5.5, "mean": 1.0},
    {"kind": "bounded_pareto", "shape": 1.5, "low": 0.1, "high": 100.0},
    {"kind": "gamma", "shape": 0.4, "mean": 2.0},
    {"kind": "uniform", "low": 0, "high": 3.0},
    {"kind": "scipy", "law": "invgauss", "parameters": {"mu": 0.8}},
)
COUNTS = {"OK": 0, "NOT OK": 0}


def tell(fine: bool, text: str) -> None:
    word = "OK" if fine else "NOT OK"
    COUNTS[word] += 1
    print(f"{word:6} {text}", flush=True)


def part(function) -> None:
    """Run one part, whatever becomes of it."""
    started = time.perf_counter()
    try:
        function()
    except Exception:  # noqa: BLE001 - the next part may do
        tell(fine=False, text=f"{function.__name__} broke off")
        print(traceback.format_exc()[-1800:], flush=True)
    print(f"       ({function.__name__}: {time.perf_counter() - started:.1f} s)", flush=True)


def two_classes(load: float, cores: int, sizes=("exponential", "exponential")) -> Workload:
    laws = {
        "exponential": {"kind": "exponential", "mean": 1.0},
        "deterministic": {"kind": "deterministic", "value": 0.7},
    }
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": 1.0},
            "size": laws[sizes[i]],
            "speedup": [{"kind": "power", "exponent": 0.5}, {"kind": "amdahl", "sequential": 0.2}][i],
            "holding_cost": [1.0, 2.0][i],
        }
        for i in range(2)
    ]
    return Workload.from_dict({"name": "two", "classes": rows}).at(cores, load)


def job_by_job() -> None:
    """Departure times of given jobs are those of the CPU engine, in every discipline, with overload."""
    for name in ("wham", "greedy", "equi", "fcfs") if not QUICK else ("wham", "equi"):
        worst = 0.0
        for seed, load, sizes in (
            (1, 0.5, "exponential"),
            (2, 1.1, "exponential"),
            (3, 1.0, "deterministic"),
        ):
            rng = np.random.default_rng(seed)
            workload = two_classes(load, 6, (sizes, sizes))
            gaps = rng.exponential(1.0 / workload.total_rate, 400)
            gaps[rng.random(400) < 0.2] = 0.0
            classes = rng.integers(0, 2, 400)
            draws = np.array([workload.classes[i].size.sample(rng, 1)[0] for i in classes])
            jobs = Chunk(np.cumsum(gaps), classes.astype(np.int64), draws)
            made = program(Policy.of(name), workload, 6)
            expected = departures(workload, 6, made, jobs)
            for rows in (None,) if QUICK else (None, 1):  # by the table, and by the rule on the device
                got = device_departures(workload, 6, made, jobs, room=8, queue_room=16, rows=rows)
                worst = max(worst, float(np.abs(got / expected - 1.0).max()))
        tell(
            worst < 1e-9,
            f"{name}: departure times as on the processor, largest relative difference {worst:.1e}",
        )


def same_run_on_processor() -> None:
    """The same replications on this processor leave the same sums."""
    workload = paper_workload(8, 0.7)
    made = program(Policy.of("wham"), workload, 8)
    sums = []
    for backend in (default_backend(), Processor()):
        run = GpuRun(workload, 8, made, jobs=128_000, seed=5, replications=64, backend=backend)
        run.extend(128_000)
        sums.append(run.outcome().records)
    for field in ("arrivals", "departures", "area", "response", "slowdown", "used", "overload"):
        a, b = (getattr(one, field).sum() for one in sums)
        tell(abs(a / b - 1.0) < 1e-9, f"{field} of a run as on the processor: {a:.12g} and {b:.12g}")


def simulated(
    policy: str, workload: Workload, cores: int, jobs: int, confidence: float = 0.999, seed: int = 1
):
    made = program(Policy.of(policy), workload, cores)
    run = GpuRun(workload, cores, made, jobs=jobs, seed=seed, name=policy)
    run.extend(jobs)
    outcome = run.outcome()
    return summarise(
        outcome.groups, workload=workload, cores=cores, policy=policy, seed=seed, jobs=run.jobs,
        confidence=confidence, events=outcome.events, seconds=outcome.seconds,
    )  # fmt: skip


def exact_costs() -> None:
    """Costs of MODEL §6 lie within 99.9 % intervals of at most 0.01 %."""
    for policy, cores, cost in EXACT if not QUICK else (EXACT[0], EXACT[4], EXACT[5]):
        result = simulated(policy, paper_workload(cores), cores, JOBS)
        inside = result.cost.low <= cost <= result.cost.high
        width = result.cost.relative_half_width
        off = (result.cost.mean - cost) / result.cost.half_width
        tell(
            inside and (width < 1e-4 or policy.startswith("fw")),
            f"{policy} on {cores}: {result.cost.mean:.7f} ± {result.cost.half_width:.1e} ({width:.4%}), "
            f"exact {cost}, off by {off:+.2f} half-widths; {result.events_per_second / 1e9:.2f} G events/s, "
            f"{result.notes or 'no notes'}",
        )


def one_class(load: float, cores: int, size: dict, speedup: dict, arrivals: dict | None = None) -> Workload:
    row = {
        "name": "jobs",
        "arrivals": arrivals or {"kind": "poisson", "rate": 1.0},
        "size": size,
        "speedup": speedup,
        "holding_cost": 1.0,
    }
    return Workload.from_dict({"name": "one", "classes": [row]}).at(cores, load)


def queues() -> None:
    """M/M/c by FCFS, and M/G/1 with processor sharing, whose mean depends on the mean size alone."""
    flat = {"kind": "rooftop", "cores": 1.0}
    for load in () if QUICK else (0.5, 0.9):
        workload = one_class(load, 8, {"kind": "exponential", "mean": 1.0}, flat)
        exact = mmc(workload.total_rate, 1.0, 8).response_time
        result = simulated("fcfs", workload, 8, JOBS)
        tell(
            result.cost.low <= exact <= result.cost.high,
            f"M/M/8 at {load}: {result.cost} and {exact:.7g}; {result.notes or 'no notes'}",
        )
    for size in (
        {"kind": "lognormal", "mean": 1.0, "sigma": 1.0},
        {"kind": "erlang", "stages": 3, "mean": 1.0},
    ):
        workload = one_class(0.6, 1, size, flat)
        exact = 1.0 / (1.0 - 0.6)
        result = simulated("equi", workload, 1, JOBS)
        tell(
            result.cost.low <= exact <= result.cost.high,
            f"M/G/1-PS, {size['kind']} sizes: {result.cost} and {exact:.7g}; {result.notes or 'no notes'}",
        )


def renewal_and_batches() -> None:
    """Renewal arrivals with paired policies: both see the same arrivals, record by record."""
    gaps = {"kind": "renewal", "interval": {"kind": "erlang", "stages": 2, "mean": 1.0}}
    workload = one_class(
        0.7, 4, {"kind": "exponential", "mean": 1.0}, {"kind": "power", "exponent": 0.5}, gaps
    )
    found = [simulated(policy, workload, 4, JOBS // 20) for policy in ("wham", "equi")]
    same = all(
        np.array_equal(a.arrivals, b.arrivals)
        for a, b in zip(found[0].records, found[1].records, strict=True)
    )
    tell(same, f"two policies see the same renewal arrivals; costs {found[0].cost} and {found[1].cost}")


def laws() -> None:
    """Every law has its moments, and passes a test of Kolmogorov and Smirnov."""
    for seed, document in enumerate(LAWS):
        law = Distribution.of(document)
        encoded = encode_laws([law])
        mean, points, ranks = order_statistics(encoded.encoded, 11 + seed)
        # Between two of the points the distance can grow by the share of draws between them.
        distance = float(np.abs(ranks - (1.0 - law.survival(points))).max()) + 1.0 / LOOKED_AT
        chance = float(special.kolmogorov(np.sqrt(SAMPLES) * distance))
        error = np.sqrt(max(law.moment(2) - law.mean**2, 1e-300) / SAMPLES)
        z = (mean - law.mean) / error
        tell(
            chance > 1e-4 and abs(z) < 4.5,
            f"{law.kind}: KS p >= {chance:.3f} with {SAMPLES:.0e} draws, mean off by {z:+.2f} errors, "
            f"inverse off by at most {encoded.error:.1e}",
        )


def order_statistics(encoded, seed):
    """Mean of the draws, a million of them in order, and their ranks; sorted on the device where CuPy is."""
    try:
        import cupy  # noqa: PLC0415

        draws = cupy.asarray(left_on_device(encoded, SAMPLES, seed))
        mean = float(draws.mean())
        draws.sort()
        at = np.unique(np.linspace(0, SAMPLES - 1, LOOKED_AT).astype(np.int64))
        points = cupy.asnumpy(draws[cupy.asarray(at)])
    except ImportError:
        draws = np.sort(sampled(encoded, SAMPLES, seed))
        mean, at = float(draws.mean()), np.arange(SAMPLES)
        points = draws
    return mean, points, (at + 0.5) / SAMPLES


def interval(policy: str, cores: int, jobs: int, seed: int) -> tuple[float, float, float]:
    """Cost and interval of one run, as a user asks for it."""
    cost = simulate("paper", cores, policy, load=0.25, jobs=jobs, seed=seed, engine="gpu").cost
    return cost.mean, cost.low, cost.high


def coverage() -> None:
    """Intervals of 95 % cover in 93 to 97 % of runs, also where the busiest pool has load .87."""
    for policy, cores, exact, jobs, runs in (
        (*EXACT[0], 4_000_000, RUNS),
        ("fw-cam:beta=0.76", 128, 0.31585720, 200_000_000, RUNS // 2),
    ):
        spawned = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=spawned) as pool:
            asked = functools.partial(interval, policy, cores, jobs)
            seeds = range(FIRST_SEED, FIRST_SEED + runs)
            mean, low, high = np.array(
                list(pool.map(asked, seeds, chunksize=max(1, runs // (4 * WORKERS))))
            ).T
        share, spread = float(np.mean((low <= exact) & (exact <= high))), float(mean.std(ddof=1))
        bias = (mean.mean() - exact) / (spread / np.sqrt(runs))
        said = float(np.mean(high - low)) / 2.0 / special.ndtri(0.975)
        tell(
            0.93 <= share <= 0.97,
            f"{policy}: coverage {share:.1%} over {runs} runs of {jobs:.0e} jobs, off by {bias:+.2f} errors, "
            f"spread {spread / said:.3f} times what they say",
        )


def overload() -> None:
    """Replications that outgrow their room go on: a load of 0.97, in every discipline that queues."""
    for policy in ("wham", "greedy") if not QUICK else ("wham",):
        workload = paper_workload(8, 0.97)
        made = program(Policy.of(policy), workload, 8)
        options = Options(every=1)
        run = GpuRun(
            workload, 8, made, jobs=20_000_000, seed=3, name=policy, replications=4096, options=options
        )
        run.extend(20_000_000)
        records = run.outcome().records
        balance = records.arrivals.sum() - records.departures.sum() - records.present[-1].sum()
        little = abs(records.area.sum() / records.response.sum() - 1.0)
        tell(
            balance == 0.0 and len(run.cohorts) >= 1,
            f"{policy} at 0.97: {len(run.cohorts)} cohorts, arrivals − departures − present = {balance:g}, "
            f"Little's law off by {little:.1e}",
        )


def main() -> int:
    print(f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}")
    import numba  # noqa: PLC0415

    print(f"numba {numba.__version__}, stand-ins: {REPLACED or 'none'}")
    print(f"device: {device_name()}", flush=True)
    parts = (
        job_by_job,
        same_run_on_processor,
        exact_costs,
        queues,
        renewal_and_batches,
        laws,
        overload,
        coverage,
    )
    chosen = [one for one in parts if one.__name__ in sys.argv[1:]] or list(parts)
    for one in chosen:
        part(one)
    print(COUNTS)
    return int(COUNTS["NOT OK"] > 0)


if __name__ == "__main__":
    sys.exit(main())
