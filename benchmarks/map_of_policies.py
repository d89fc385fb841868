"""Cells of the paper's experiments on a machine that lends a GPU and has nothing but Python: values as JSON.

`python3 -m benchmarks.map_of_policies check` compares sweeps with single runs, and times one of each kind;
`… cells FOLDER SECONDS NAME…` computes the cells of experiments at full effort, on all processors and the
GPU, and writes FOLDER/NAME.json. `malleable paper --full --engine gpu` does the same elsewhere.
`… show FILE…` prints what the files, put together, say of the map of policies.
"""

import importlib
import json
import multiprocessing
import os
import sys
import time
import traceback
from pathlib import Path

from benchmarks.device_shims import prepare

REPLACED = prepare()
os.environ["MALLEABLE_PAPER_ENGINE"] = "gpu"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
# ruff: noqa: E402 - the shims come first
import numpy as np

from malleable.contracts import Policy
from malleable.engine.gpu import sweep as gpu_sweep
from malleable.engine.gpu.cohort import Options
from malleable.engine.gpu.run import GpuRun
from malleable.paper.contracts import FULL
from malleable.paper.experiments import e14_map_of_policies as experiment
from malleable.paper.experiments.e14_map_of_policies.cells import simulated
from malleable.paper.experiments.e14_map_of_policies.workloads import random_workload
from malleable.paper.simulation_cells import PAPERS
from malleable.simulation import program

WORKERS = int(os.environ.get("MAP_WORKERS", "16"))
TIMES: list[dict] = []


def timed_packs() -> None:
    """Have every pack tell how long it took."""
    plain = gpu_sweep._run  # noqa: SLF001 - to time it

    def told(items, *rest):
        started = time.perf_counter()
        again = plain(items, *rest)
        seconds = time.perf_counter() - started
        one = items[0]
        jobs = sum(item.stride * item.replications for item in items) * gpu_sweep.RECORDS
        TIMES.append(
            {"settings": len(items), "again": len(again), "s": round(seconds, 3), "jobs": jobs,
             "kind": [one.setting.classes, one.setting.program.discipline, one.by_rule, one.room],
             "threads": sum(item.replications for item in items)}
        )  # fmt: skip
        return again

    gpu_sweep._run = told  # noqa: SLF001


def check() -> None:
    """Sweeps and single runs on the same replications; then how long a small cell of each kind takes."""
    asked = [
        gpu_sweep.Asked(w, float(n), program(Policy.of(p), w, n), 5 + k, 64, 64 * 2000)
        for k, (m, n) in enumerate(((2, 4), (3, 16), (4, 8), (3, 64)))
        for w in [random_workload(m, n, k)]
        for p in PAPERS
    ]
    found = {}
    started = time.perf_counter()
    gpu_sweep.sweep(asked, keep=found.__setitem__)
    print(f"check: {len(asked)} settings in {time.perf_counter() - started:.1f} s", flush=True)
    for i, one in enumerate(asked):
        run = GpuRun(
            one.workload, one.cores, one.program, jobs=one.jobs, seed=one.seed, replications=64,
            options=Options(statistics=False, rule_on_device=True),
        )  # fmt: skip
        run.extend(one.jobs)
        a, b = found[i], run.outcome()
        worst = max(
            float(np.abs(x.area.sum(0) / y.area.sum(0) - 1.0).max())
            for x, y in zip(a.groups, b.groups, strict=True)
        )
        same = a.records.departures.sum(0).tolist() == b.records.departures.sum(0).tolist()
        print(
            one.cores,
            one.program.rule.__name__,
            a.jobs,
            b.jobs,
            "area off",
            worst,
            "departures",
            same,
            flush=True,
        )
    for m, n, count in ((3, 16, 64), (4, 32, 32), (2, 128, 64)):
        TIMES.clear()
        started = time.perf_counter()
        rows = simulated(m, n, count, list(PAPERS), 1 << 21)
        seconds = time.perf_counter() - started
        packs = sum(row["s"] for row in TIMES)
        events = 2 * sum(row["jobs"] for row in TIMES)
        print(f"cell {m}-{n}: {seconds:.1f} s, packs {packs:.1f} s, {events:.3g} events", flush=True)
        print(*TIMES, sep="\n", flush=True)
        wide = sorted(r["differences"]["greedy"][1] / r["costs"]["wham"][0] for r in rows)
        own = sorted(r["costs"]["wham"][1] / r["costs"]["wham"][0] for r in rows)
        print(
            "half-widths, median and largest: own",
            own[count // 2],
            own[-1],
            "paired",
            wide[count // 2],
            wide[-1],
        )
        TIMES.clear()
        started = time.perf_counter()
        simulated(m, n, count, list(PAPERS), 1 << 21)
        again = time.perf_counter() - started
        packs = sum(row["s"] for row in TIMES)
        print(f"again: {again:.1f} s, packs {packs:.1f} s, {events / packs / 1e9:.2f} G events/s", flush=True)


def one_cell(asked):
    """One cell, its value or what went wrong, and how long it took."""
    name, cell = asked
    started = time.perf_counter()
    TIMES.clear()
    try:
        value = cell.work(**dict(cell.arguments))
    except Exception as error:  # noqa: BLE001 - the others may do
        value = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()[-1500:]}
    seconds = time.perf_counter() - started
    return name, cell.key, dict(cell.arguments), value, seconds, list(TIMES)


def cells(folder: Path, limit: float, names: list[str]) -> None:
    """All cells of the experiments, the longest first; what is not done in time is left out."""
    started = time.perf_counter()
    only = os.environ.get("MAP_ONLY", "").split(",")
    chosen = []
    for name in names:
        module = importlib.import_module(f"malleable.paper.experiments.{name}")
        chosen += [(name, cell) for cell in module.cells(FULL) if only == [""] or cell.key in only]
    chosen.sort(key=lambda one: -one[1].weight)
    kept = {name: {} for name in names}
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        results = pool.imap_unordered(one_cell, chosen, chunksize=1)
        for _ in chosen:
            left = limit - (time.perf_counter() - started)
            try:
                name, key, arguments, value, seconds, packs = results.next(timeout=max(left, 0.1))
            except multiprocessing.TimeoutError:
                print("out of time", flush=True)
                break
            kept[name][key] = {"arguments": arguments, "value": value, "seconds": seconds, "packs": packs}
            wrong = value["error"] if isinstance(value, dict) and "error" in value else ""
            now, busy = time.perf_counter() - started, sum(row["s"] for row in packs)
            print(f"{now:6.1f} {name} {key}: {seconds:.1f} s, packs {busy:.1f} s {wrong}", flush=True)
            if wrong and "trace" in value:
                print(value["trace"], flush=True)
        for name, values in kept.items():
            (folder / f"{name}.json").write_text(json.dumps(values, separators=(",", ":")))
        print(f"{time.perf_counter() - started:.1f} s in all", flush=True)
        pool.terminate()


def show(files: list[str]) -> None:
    """Verdicts and tables of the map of policies from the values of several runs."""
    values = {}
    for file in files:
        cells = json.loads(Path(file).read_text(encoding="utf-8"))
        values |= {key: cell["value"] for key, cell in cells.items() if isinstance(cell["value"], list)}
    findings = experiment.findings(FULL, values)
    for verdict in findings.verdicts:
        print(f"{verdict.word}: {verdict.statement}: {verdict.measured}")
    for table in findings.tables:
        if table.shown:
            print(f"\n{table.title}\n{' | '.join(table.columns)}")
            for row in zip(*table.columns.values(), strict=True):
                print(" | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))


if __name__ == "__main__":
    timed_packs()
    if sys.argv[1] == "check":
        check()
    elif sys.argv[1] == "show":
        show(sys.argv[2:])
    else:
        cells(Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
