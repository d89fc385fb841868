"""Why FW-CAM is mean-field optimal: its widths converge, its cores fill up, and nobody waits."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Verdict, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._fwcam_figures import (
    BETAS,
    NEAR,
    distances,
    figure,
    plans,
    queues_table,
    simulated_table,
    widths_table,
)
from malleable.paper.experiments._pools import all_planned
from malleable.paper.simulation_cells import compared
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.paper.contracts import Values
    from malleable.paper.experiments._fwcam_figures import Runs

LOAD = 0.25
SEED = 4
SIMULATED = tuple((beta, n) for beta in BETAS for n in (16, 64, 256, 1024, 4096, 16384))
QUICK_SIMULATED = ((0.8, 64), (0.8, 256), (0.9, 64))
"""β and n of the simulations; in a quick look, those whose queues a short run can judge."""
FAR = tuple(2**i for i in range(13, 51))
"""Where only widths and effective loads are worked out."""
MOST_SLOTS = {"quick": 100, "normal": 100, "full": 200}
"""Slots of a class up to which M/PH/c is solved, by effort."""

CHOICES = {
    "beta": "0.76, 0.8 and 0.9: near the least that the paper allows, the package's default, and a large one",
    "n": "powers of 2: widths to 2^50, waiting to 4096 where M/PH/c is quick enough, simulations 16 to 16384",
    "run length": "until the 95 % interval of the cost is ±1 % (±0.05 % at full effort)",
    "warm-up": "found by MSER-5 and left out",
    "slots": "rounded down after adding 1e-9, so that a slot that fits up to rounding counts",
    "agreement": (
        "all exact values in intervals of 99.9 % for all of them together, or within half the precision"
    ),
}


def cells(effort: Effort) -> list[Cell]:
    """Plans and exact queues by β; simulations by β and n."""
    exact = {"load": LOAD, "most_slots": MOST_SLOTS[effort.name]}
    far = FAR[7::10] if effort.quick else FAR
    made = [Cell("relaxed", relaxed_widths, {}, 0.1)]
    made += [
        Cell(f"plans-{b}", all_planned, {"cores": [*NEAR, *far], "beta": b, **exact}, 2.0) for b in BETAS
    ]
    run = {"load": LOAD, "seed": SEED, "jobs": effort.jobs, "most_jobs": effort.most_jobs}
    run["precision"] = (1.0 if effort.name == "full" else 5.0) * effort.precision
    made += [
        Cell(
            f"fw-cam-{b}-{n}",
            compared,
            {"policies": [f"fw-cam:beta={b}"], "cores": n, **run},
            effort.jobs * (1.0 + n / 8000) / 4e6,
        )
        for b, n in _simulated(effort)
    ]
    return made


def _simulated(effort: Effort) -> tuple[tuple[float, int], ...]:
    return QUICK_SIMULATED if effort.quick else SIMULATED


def relaxed_widths() -> dict[str, Any]:
    """The widths k_i* of the relaxed problem, and V*."""
    found = bound(paper_workload(64, LOAD), 64)
    return {
        "names": [c.name for c in found.classes],
        "widths": found.widths.tolist(),
        "loads": (found.workload.loads / 64).tolist(),
        "bound": found.bound,
    }


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the tables, and what they say."""
    runs = list(_compared(effort, values))
    cases, classes = list(_cases(runs)), list(_class_cases(runs))
    near = effort.precision / 2.0
    return Findings(
        title="FW-CAM: widths converge, cores fill up, queues vanish",
        source="Lemma on the convergence of k, Lemma on no queueing",
        statement=(
            "FW-CAM runs every job of class i on the same number of cores k_i, the best widths for a machine "
            "of only n − n^β cores; the other n^β are slack against randomness. As n grows the slack becomes "
            "a vanishing share of the machine, so k_i tends to k_i*, the width in the lower bound, and the "
            "effective load (the share of cores in use) tends to 1. Yet the slack grows fast enough that "
            "queues vanish. Together this makes FW-CAM optimal in the limit."
        ),
        figures=(figure(values, runs),),
        tables=(widths_table(values), queues_table(values), simulated_table(runs)),
        verdicts=(
            *(_widths_converge(beta, values) for beta in BETAS),
            _effective_load(values),
            _slots(values),
            *(_no_queueing(beta, values) for beta in BETAS),
            ev.agreement("Simulated costs agree with Erlang C and M/PH/c", cases, near),
            ev.agreement("Simulated response times of all classes agree with them, too", classes, near),
        ),
        remarks=(
            (
                "The bound of Li and Goldberg that the paper's proof uses needs some 10^10 cores before it "
                "says anything here. The queues are short long before."
            ),
            (
                "Waiting does not fall at every step: slots are whole, and what rounding down takes away "
                "weighs most when there are few."
            ),
            "A class of hyperexponential sizes with too many slots for M/PH/c has no exact waiting time.",
        ),
    )


def _widths_converge(beta: float, values: Values) -> Verdict:
    """The distance must fall at every step and end as the power β − 1 of n: slack is n^(β−1) of n."""
    cores, far = distances(beta, values)
    worst = far.max(axis=1)
    with np.errstate(divide="ignore"):
        exponents = np.log(far[-1] / far[-2]) / log(cores[-1] / cores[-2])
    falls = bool((np.diff(worst) < 0.0).all())
    text = (
        f"farthest class {worst[0]:.1%} off on {cores[0]} cores, {worst[-1]:.3%} on {cores[-1]:.2g}; "
        f"exponents there {', '.join(f'{e:.3f}' for e in exponents)}, in theory {beta - 1.0:.2f}"
    )
    powers = bool((np.abs(exponents / (beta - 1.0) - 1.0) < 0.1).all())
    return Verdict(f"Widths converge to those of the lower bound with β = {beta}", falls and powers, text)


def _effective_load(values: Values) -> Verdict:
    """It must be 1 − n^(β−1), which tends to 1."""
    rows = [row for beta in BETAS for row in plans(beta, values)]
    off = max(abs(row["effective_load"] - 1.0 + row["cores"] ** (row["beta"] - 1.0)) for row in rows)
    ends = ", ".join(f"{plans(b, values)[-1]['effective_load']:.5f} (β = {b})" for b in BETAS)
    rising = all(
        later["effective_load"] > earlier["effective_load"]
        for beta in BETAS
        for earlier, later in zip(plans(beta, values), plans(beta, values)[1:], strict=False)
    )
    text = f"equal to 1 − n^(β−1) up to {off:.1g}; on {rows[-1]['cores']:.2g} cores {ends}"
    return Verdict("The effective load is 1 − n^(β−1) and tends to 1", off < 1e-9 and rising, text)


def _slots(values: Values) -> Verdict:
    """n_i' = ⌊busy_i/(1 − n^(β−1))⌋ up to 2^30 cores; beyond, rounding errors reach whole slots."""
    pools = [
        (pool["slots"], pool["busy"] / (1.0 - row["cores"] ** (row["beta"] - 1.0)))
        for beta in BETAS
        for row in plans(beta, values)
        if row["cores"] <= 2**30
        for pool in row["pools"]
    ]
    right = sum(-1.0 - 1e-9 * exact < slots - exact < 1e-6 + 1e-9 * exact for slots, exact in pools)
    statement = "Slots are ⌊(load_i/s_i(k_i))/(1 − n^(β−1))⌋"
    return Verdict(statement, right == len(pools), f"{right} of {len(pools)} numbers of slots")


def _no_queueing(beta: float, values: Values) -> Verdict:
    """The mean wait of every class must fall as n grows, and so must its probability."""
    told, slopes = [], []
    for i, name in enumerate(values["relaxed"]["names"]):
        known = [(r["cores"], r["pools"][i]) for r in plans(beta, values) if r["pools"][i]["waiting"]]
        slopes += [
            ev.power([n for n, _ in known], [pool[key] for _, pool in known])[0]
            for key in ("waiting", "waiting_probability")
        ]
        (n, first), (m, last) = known[0], known[-1]
        told.append(
            f"{name} waits {first['waiting']:.2g} ({first['waiting_probability']:.1%} of jobs) on {n} cores, "
            f"{last['waiting']:.1g} ({last['waiting_probability']:.1g}) on {m}"
        )
    known_all = all(slope.half_width < inf for slope in slopes)
    holds = all(slope.high < 0.0 for slope in slopes) if known_all else None
    return Verdict(f"Queues vanish with β = {beta}", holds, "; ".join(told))


def _compared(effort: Effort, values: Values) -> Iterator[tuple[float, int, Any, Any]]:
    """β, n, the plan and the simulation, where there is one."""
    rows = {(beta, row["cores"]): row for beta in BETAS for row in plans(beta, values)}
    for beta, n in _simulated(effort):
        value = values[f"fw-cam-{beta}-{n}"]
        if not failed(value) and (beta, n) in rows:
            yield beta, n, rows[beta, n], value["results"][f"fw-cam:beta={beta}"]


def _cases(runs: Runs) -> Iterator[ev.Case]:
    for beta, n, row, result in runs:
        if row.get("cost") is not None:
            name = f"β = {beta} on {n} cores"
            yield ev.Case(name, ev.estimate(result["cost"]), result, row["cost"])


def _class_cases(runs: Runs) -> Iterator[ev.Case]:
    for beta, n, row, result in runs:
        for pool, found in zip(row["pools"], result["classes"], strict=True):
            if pool["waiting"] is not None:
                name = f"{pool['name']}, β = {beta} on {n} cores"
                exact = pool["service"] + pool["waiting"]
                yield ev.Case(name, ev.estimate(found["response_time"]), result, exact)
