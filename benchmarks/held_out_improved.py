"""`wham-improved` against WHAM, both blind to sizes, on random workloads that its design never saw.

    python -m benchmarks.held_out_improved [--first SEED] [--workloads N] [--jobs M] [--out FILE]

Two to six classes with any speedups, exponential, hyperexponential or lognormal sizes, unequal costs and
sizes, on 3 to 64 cores at loads from 0.3 to 0.95. Both policies serve the same jobs. Where the policy stays
with WHAM the difference is 0 by construction, so nothing is run. Intervals are simultaneous: with N
comparisons each has confidence 1 − 0.05/N (Bonferroni). Seeds below 70 000 were used in
the design.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from malleable import compare
from malleable.model import Workload
from malleable.paper.experiments.shared.random_classes import balanced_hyperexponential, random_speedup
from malleable.policies.improvement.plan import plan

HELD_OUT = 70_000
SPEEDUPS = {
    "exponent": (0.15, 0.9),
    "sequential": (0.03, 0.5),
    "contention": (0.02, 0.3),
    "coherency": (1e-4, 0.02),
}
LAWS = ("exponential", "hyperexponential", "lognormal")
TOLERATED = 0.0005
"""By how much more WHAM's cost may be exceeded before it counts as a loss."""


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """Evenly spread on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def law(rng: np.random.Generator, kind: str, mean: float) -> dict:
    if kind == "hyperexponential":
        return balanced_hyperexponential(mean, float(rng.uniform(0.6, 0.95)))
    if kind == "lognormal":
        return {"kind": kind, "mean": mean, "sigma": float(rng.uniform(0.5, 1.5))}
    return {"kind": kind, "mean": mean}


def setting(seed: int) -> tuple[Workload, int, float, str]:
    """A workload at its load, the cores, the load, and the law of sizes."""
    rng = np.random.default_rng(seed)
    kind = LAWS[seed % len(LAWS)]
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": float(rng.uniform(0.2, 2.0))},
            "size": law(rng, kind, between(rng, 0.2, 5.0)),
            "speedup": random_speedup(rng, **SPEEDUPS),
            "holding_cost": between(rng, 0.2, 5.0),
        }
        for i in range(int(rng.integers(2, 7)))
    ]
    cores, load = round(between(rng, 3.0, 64.0)), float(rng.uniform(0.3, 0.95))
    made = Workload.from_dict({"name": f"random-{seed}", "classes": rows})
    return made.at(cores, load), cores, load, kind


def measured(seed: int, jobs: int, comparisons: int) -> dict:
    """What the policy costs relative to WHAM, with a simultaneous interval."""
    workload, cores, load, kind = setting(seed)
    made = plan(workload, cores)
    row = {"seed": seed, "classes": len(workload.classes), "cores": cores, "load": load, "sizes": kind}
    row |= {"expected": -made.gain, "mean": 0.0, "low": 0.0, "high": 0.0, "note": made.note}
    if made.value is None:
        return row
    confidence = 1.0 - 0.05 / comparisons
    found = compare(
        workload, cores, ["wham", "wham-improved"], jobs=jobs, seed=seed, sizes="unknown",
        confidence=confidence, workers=1,
    )  # fmt: skip
    base, difference = found.results[0].cost.mean, found.differences[0]
    return row | {name: getattr(difference, name) / base for name in ("mean", "low", "high")}


def summary(rows: list[dict]) -> dict:
    """The mean, how often it stayed with WHAM, and who lost."""
    means = np.array([row["mean"] for row in rows])
    stayed = [row for row in rows if row["note"]]
    lost = [row for row in rows if row["low"] > TOLERATED]
    gained = [row for row in rows if row["high"] < 0.0]
    worst = max(rows, key=lambda row: row["mean"])
    by_law = {kind: float(np.mean([r["mean"] for r in rows if r["sizes"] == kind] or [0.0])) for kind in LAWS}
    return {
        "workloads": len(rows),
        "mean": float(means.mean()),
        "best": float(means.min()),
        "mean by law of sizes": by_law,
        "stayed with WHAM": len(stayed),
        "significantly better": len(gained),
        "significantly worse than tolerated": len(lost),
        "worst": worst,
        "losers": lost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=HELD_OUT)
    parser.add_argument("--workloads", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--comparisons", type=int, default=None, help="of all parts, if run in parts")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    comparisons = options.comparisons or options.workloads
    rows = []
    for seed in range(options.first, options.first + options.workloads):
        rows.append(measured(seed, options.jobs, comparisons))
        print(json.dumps(rows[-1]), flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps({"summary": summary(rows), "rows": rows}, indent=1))
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
