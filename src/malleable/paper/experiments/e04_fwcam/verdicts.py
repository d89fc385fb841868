"""Verdicts of e04_fwcam: what its numbers bear out."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Verdict
from malleable.paper.experiments.e04_fwcam.cells import (
    BETAS,
)
from malleable.paper.experiments.e04_fwcam.readings import (
    distances,
    plans,
)
from malleable.paper.experiments.shared import evidence as ev

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

    Runs = list[tuple[float, int, Any, Any]]


def widths_converge(beta: float, values: Values) -> Verdict:
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


def effective_load_verdict(values: Values) -> Verdict:
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


def slots_verdict(values: Values) -> Verdict:
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


def no_queueing(beta: float, values: Values) -> Verdict:
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
