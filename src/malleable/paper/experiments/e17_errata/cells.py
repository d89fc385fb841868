"""What is computed for e17_errata: for each error a number that would not be what it is were there none."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.contracts import Speedup
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.fw_cam_pools import cores_of_the_queueing_bound
from malleable.policies.wham import Wham
from malleable.theory.market import WhittleBuyers
from malleable.theory.whittle import least_cost, optimal_action, whittle_index

WIDEST = 2.0**20
SIZE, STEPS = 20.0, 4000
"""The job whose discounted cost is compared, and the steps in which it may change its width."""


def cells(effort: Effort) -> list[Cell]:  # noqa: ARG001 - nothing takes long
    """One cell for each error that numbers show."""
    works = (threshold, as_many_jobs_as_cores, concavity, single_arm, lemma_proof, stability, linear_limit,
             base_cores, li_goldberg)  # fmt: skip
    return [Cell(work.__name__, work) for work in works]


def _cheapest(speedup: Speedup, weight: float, price: float) -> float:
    """argmin (c + l·k)/s(k) over widths of a fine grid: what the rule means, without its formula."""
    k = np.geomspace(1.0, 1e3, 200_001)
    return float(k[np.argmin((weight + price * k) / np.asarray(speedup(k)))])


def threshold() -> dict[str, Any]:
    """Demand of √k, f(1) = 1, for costs 2 and ½, around the printed threshold l = f(1)."""
    root = Speedup.of({"kind": "power", "exponent": 0.5})
    buyers = WhittleBuyers([root, root], np.array([2.0, 0.5]))
    return {
        "dear_below": _cheapest(root, 2.0, 0.999),
        "dear_above": _cheapest(root, 2.0, 1.001),
        "printed_cheap": 0.5 / 0.999,
        "cheap": _cheapest(root, 0.5, 0.999),
        "demand": buyers.demand(1.001).tolist(),
    }


def as_many_jobs_as_cores() -> dict[str, Any]:
    """Four jobs that are linear up to two cores, on four cores: no price has each of them want one."""
    kinked = {"kind": "linear_power", "cores": 2.0, "exponent": 0.5}
    return {"least": _cheapest(Speedup.of(kinked), 1.0, 1e6), "cores": 4, "jobs": 4}


def concavity() -> dict[str, Any]:
    """A speedup with s(k)/k non-increasing that is not concave."""
    k, s = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.1, 2.1])
    return {"efficiency": (s / k).tolist(), "slopes": (np.diff(s) / np.diff(k)).tolist()}


def single_arm() -> dict[str, Any]:
    """√k, c = α = 1, x = 20: indices, first widths, and at one price the costs of both arms."""
    root = Speedup.of({"kind": "power", "exponent": 0.5})
    held, index = (float(whittle_index(root, SIZE, 1.0, 1.0, constant=kind)) for kind in (True, False))
    price = 0.5 * held
    dx, k = SIZE / STEPS, np.geomspace(1.0, 4096.0, 1200)
    spent = -np.expm1(-dx / np.asarray(root(k)))
    value = 0.0
    for _ in range(STEPS):
        value = min(float(((1.0 + price * k) * spent + (1.0 - spent) * value).min()), 1.0)
    return {
        "held_index": held,
        "index": index,
        "held_width": float(optimal_action(root, SIZE, 1.0, held * (1.0 - 1e-9), 1.0, constant=True)),
        "width": float(optimal_action(root, SIZE, 1.0, index * (1.0 - 1e-9), 1.0)),
        "held_cost": float(least_cost(root, SIZE, 1.0, price, 1.0, constant=True)),
        "cost": float(least_cost(root, SIZE, 1.0, price, 1.0)),
        "by_steps": value,
    }


def lemma_proof() -> dict[str, Any]:
    """Half the time on 1 core and half on 9: work done by ∫ k dt as printed, and by ∫ s(k) dt, for √k."""
    return {"printed": 0.5 * (1 + 9), "right": 0.5 * (1.0 + 3.0), "steady": float(np.sqrt(5.0))}


def stability() -> dict[str, Any]:
    """One core, a job of size 2 at time 0 and one of size 1 at time ½: when WHAM and FCFS end the first."""
    one = {"arrivals": {"kind": "poisson", "rate": 0.3}, "size": {"kind": "exponential", "mean": 1.0},
           "speedup": {"kind": "power", "exponent": 0.5}, "name": "only"}  # fmt: skip
    workload = Workload.from_dict({"name": "one", "classes": [one]})
    first, second = Wham().allocate(Jobs.of(workload, [0, 0], [1.5, 1.0], age=[0.5, 0.0]), 1.0).cores.tolist()
    # The shorter job has the core from ½ to 3/2, then the longer one goes on.
    return {"first": first, "second": second, "wham": 0.5 + second * 1.0 + 1.5, "fcfs": 2.0}


def linear_limit() -> dict[str, Any]:
    """s = ½k + ½√k at load ¼: the effective load on any width, and the price at which that is bought."""
    k = np.array([1.0, 1e2, 1e4, WIDEST])
    s = 0.5 * k + 0.5 * np.sqrt(k)
    slope = 0.5 + 0.25 / np.sqrt(k)
    return {
        "widths": k.tolist(),
        "effective": (0.25 * k / s).tolist(),
        "price": (slope / (s - k * slope)).tolist(),
    }


def base_cores() -> dict[str, Any]:
    """Load over ρ = ¼ of the printed workload."""
    return {"cores": float(paper_workload().loads.sum()) / 0.25}


def li_goldberg() -> dict[str, Any]:
    """The cores from which the queueing bound of the proof says anything, by β."""
    return {f"{beta:g}": cores_of_the_queueing_bound(beta, 0.25) for beta in (0.76, 0.8, 0.9)}
