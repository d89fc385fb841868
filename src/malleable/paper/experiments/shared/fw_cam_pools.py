"""FW-CAM's exact numbers, as cells: widths, slots, waiting and cost, or why there is no such plan.

Every class is a queue of its own: Erlang C for exponential sizes, M/PH/c for phase-type ones. The work of
M/PH/c grows with the fourth power of the slots, so beyond `most_slots` it is left out, except where Erlang C
says that no job waits: far below capacity the number of jobs in service is Poisson whatever the sizes, and
if one exponential job in ten million waits, hardly any other does, and costs keep their first six digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.errors import InfeasibleError, UnstableError
from malleable.model import paper_workload
from malleable.theory.fw_cam import BETAS, plan
from malleable.theory.queues import erlang_c, mgc_response_time, mmc
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.model import JobClass, Workload
    from malleable.theory.fw_cam import Pool

NO_WAITING = 1e-7
"""Erlang C below which waiting counts as none."""
MOST_EXPONENTIAL = 2_000_000
"""Slots up to which Erlang C is summed."""
CANDIDATES = (0.751, *BETAS)
"""Where the best β is looked for."""


def planned(cores: int, beta: float, load: float, most_slots: int) -> dict[str, Any]:
    """FW-CAM's plan with its exact cost; `status` says whether there is one."""
    workload = paper_workload(cores, load)
    try:
        made = plan(workload, float(cores), beta)
    except (InfeasibleError, UnstableError) as error:
        kind = "infeasible" if isinstance(error, InfeasibleError) else "unstable"
        return {"cores": cores, "beta": beta, "status": kind, "reason": error.sentence}
    pools = [_pool(c, p, most_slots) for c, p in zip(workload.classes, made.pools, strict=True)]
    waits = [pool["waiting"] for pool in pools]
    known = None not in waits
    service = _per_job(workload, [pool["service"] for pool in pools])
    return {
        "cores": cores,
        "beta": beta,
        "status": "stable",
        "pools": pools,
        "effective_load": sum(pool["effective_load"] for pool in pools) / cores,
        "service_cost": service,
        "waiting_cost": _per_job(workload, waits) if known else None,
        "cost": service + _per_job(workload, waits) if known else None,
    }


def cores_of_the_queueing_bound(beta: float, load: float) -> float:
    """Cores from which the bound of Li and Goldberg, which the paper's proof uses, holds for every class.

    It asks for n'(1 − ρ)² ≥ 10⁶ E[(A/E A)²]², which is 4·10⁶ for Poisson arrivals. With n^β of n cores kept
    free, 1 − ρ = n^{β−1} and n' is N_i*, the jobs of the class in the limit, so that n^{2β−1} is what grows.
    """
    shares = [one.jobs for one in bound(paper_workload(1.0, load), 1.0).classes]
    return float((4e6 / min(shares)) ** (1.0 / (2.0 * beta - 1.0)))


def all_planned(cores: Iterable[int], beta: float, load: float, most_slots: int) -> list[dict[str, Any]]:
    """The plans on several numbers of cores."""
    return [planned(n, beta, load, most_slots) for n in cores]


def best_planned(cores: int, load: float, most_slots: int) -> dict[str, Any]:
    """The plan of the β with the least exact cost.

    Candidates are tried in order of their cost without waiting, which cannot be undercut; the search ends
    where that alone exceeds the best cost so far. It fails if a candidate before that has no exact cost.
    """
    sketches = [planned(cores, beta, load, 0) for beta in CANDIDATES]
    stable = [s for s in sketches if s["status"] == "stable"]
    best: dict[str, Any] | None = None
    for sketch in sorted(stable, key=lambda s: float(s["service_cost"])):
        if best is not None and sketch["service_cost"] >= best["cost"]:
            break
        found = planned(cores, sketch["beta"], load, most_slots)
        if found["cost"] is None:
            return {"cores": cores, "status": "not computed", "reason": "too many slots for M/PH/c"}
        if best is None or found["cost"] < best["cost"]:
            best = found
    if best is not None:
        return best
    reason = f"no β from {CANDIDATES[0]:g} to {CANDIDATES[-1]:g} works"
    return {"cores": cores, "status": "unstable", "reason": reason}


def _pool(job_class: JobClass, pool: Pool, most_slots: int) -> dict[str, Any]:
    rate, speed = job_class.arrivals.rate, float(job_class.speedup(pool.width))
    service = job_class.size.mean / speed
    waiting, probability = _waiting(job_class, pool.slots, rate * service, speed, most_slots)
    return {
        **pool._asdict(),
        "busy": rate * service,
        "service": service,
        "waiting": waiting,
        "waiting_probability": probability,
    }


def _waiting(
    job_class: JobClass, slots: int, busy: float, speed: float, most_slots: int
) -> tuple[float | None, float | None]:
    """Mean time in line and probability of waiting; None where it takes too long to compute."""
    phases = job_class.size.phase_type()
    if slots > MOST_EXPONENTIAL:
        return None, None
    if phases is not None and len(phases[0]) == 1:
        means = mmc(job_class.arrivals.rate, job_class.size.mean / speed, slots)
    elif slots <= most_slots:
        means = mgc_response_time(job_class.arrivals.rate, job_class.size, slots, speed)
    elif erlang_c(slots, busy) <= NO_WAITING:
        return 0.0, 0.0
    else:
        return None, None
    return means.waiting_time, means.waiting_probability


def _per_job(workload: Workload, times: list[float]) -> float:
    """(1/λ) Σ λ_i c_i t_i."""
    return float(workload.rates @ (workload.holding_costs * times)) / workload.total_rate
