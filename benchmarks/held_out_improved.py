"""`wham-improved` against WHAM, both blind to sizes, on random workloads that its design never saw.

    python -m benchmarks.held_out_improved [--first SEED] [--workloads N] [--jobs M] [--wrong low|high]

Two to six classes with any speedups, exponential, hyperexponential or lognormal sizes, unequal costs and
sizes, on 3 to 64 cores at loads from 0.3 to 0.95. Both policies serve the same jobs. Where the policy stays
with WHAM the difference is 0 by construction, so nothing is run. Intervals are simultaneous: with N
comparisons each has confidence 1 − 0.05/N (Bonferroni). With `--wrong` the policy is fitted to a load that is
20 % too low or too high. Seeds below 70 000 were used in the design.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from malleable import compare
from malleable.paper.experiments.e15_few_cores.held_out import LAWS, setting
from malleable.paper.simulation_cells import described
from malleable.policies.base.paired_trial import BLIND_BATCHES, WARM_UP, blind_trial
from malleable.policies.improved.job_rules import program
from malleable.policies.improved.plan import BY_JOB, plan
from malleable.policies.wham import Wham

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.policies.improved.count_value import Value

HELD_OUT = 70_000
TOLERATED = 0.0005
"""By how much more WHAM's cost may be exceeded before it counts as a loss."""
WRONG = {"no": 1.0, "low": 0.8, "high": 1.2}
"""What the true load is multiplied by to get the load of the fit."""
HIGHEST = 0.97
"""The highest load that is fitted to."""


def measured(seed: int, jobs: int, comparisons: int, wrong: str) -> dict:
    """What the policy costs relative to WHAM, with a simultaneous interval."""
    document, cores, load = setting(seed)
    workload = described(document, cores, load)
    told = workload if wrong == "no" else workload.at(cores, min(WRONG[wrong] * load, HIGHEST))
    made = plan(told, cores)
    row = {"seed": seed, "classes": len(workload.classes), "cores": cores, "load": load}
    row |= {"sizes": LAWS[seed % len(LAWS)], "expected": -made.gain, "mean": 0.0, "low": 0.0, "high": 0.0}
    row["note"] = made.note
    if made.value is None:
        return row
    confidence = 1.0 - 0.05 / comparisons
    if wrong != "no":
        return row | misled(workload, cores, made.value, jobs, seed, confidence)
    found = compare(
        workload, cores, ["wham", "wham-improved"], jobs=jobs, seed=seed, sizes="unknown",
        confidence=confidence, workers=1,
    )  # fmt: skip
    base, difference = found.results[0].cost.mean, found.differences[0]
    return row | {name: getattr(difference, name) / base for name in ("mean", "low", "high")}


def misled(workload: Workload, cores: int, value: Value, jobs: int, seed: int, confidence: float) -> dict:
    """The same with a value function that was fitted to something else, which `compare` cannot be told."""
    rules = program(workload, cores, value, BY_JOB), Wham().program(workload, cores, BY_JOB)
    trial = blind_trial(workload, cores, *rules, seed, jobs // BLIND_BATCHES)
    far = stats.t.ppf(0.5 + 0.5 * confidence, BLIND_BATCHES - WARM_UP - 1) * trial.error
    return {
        "mean": trial.difference,
        "low": float(trial.difference - far),
        "high": float(trial.difference + far),
    }


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
    parser.add_argument("--wrong", choices=list(WRONG), default="no")
    parser.add_argument("--comparisons", type=int, default=None, help="of all parts, if run in parts")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    comparisons = options.comparisons or options.workloads
    rows = []
    for seed in range(options.first, options.first + options.workloads):
        rows.append(measured(seed, options.jobs, comparisons, options.wrong))
        print(json.dumps(rows[-1]), flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps({"summary": summary(rows), "rows": rows}, indent=1))
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
