"""The paper's single-armed bandit and its Whittle policy, as cells: one job that rents cores, then many.

Prices come in two scales (the paper's lemma on the single arm). At l = α·r, of the order of α, a job is wide,
and its width tends to argmin (c + r·k)/s(k) as α → 0. At l of the order of 1 it has one core or none, and is
served while l < c/x. What these cells compare with is worked out here on grids of widths, from s alone.

Actions are those of the optimal arm, which may change them, but for the grid of the indexability, whose
actions are held for life, so that every other one can be tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Policy, Speedup
from malleable.model import paper_workload
from malleable.model.jobs import Jobs
from malleable.theory.whittle import indexability, least_cost, optimal_action, whittle_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.model import JobClass

WIDEST = 1e5
FINE = 4001
"""Widths of a grid on which a minimum is sought; the parabola through the lowest three points refines it."""
CHANGED = 0.01
"""Cores by which the allocation to a job must differ to count as another one."""


def actions(
    job_class: int, remaining: Sequence[float], discounts: Sequence[float], rents: Sequence[float]
) -> dict[str, Any]:
    """Optimal widths of a class of the paper at prices l = α·r, by discount and size, and their limit."""
    chosen = paper_workload().classes[job_class]
    c, r = chosen.holding_cost, np.asarray(rents)
    widths = [
        [np.asarray(optimal_action(chosen.speedup, x, c, alpha * r, alpha)).tolist() for x in remaining]
        for alpha in discounts
    ]
    indices = [
        (np.asarray(whittle_index(chosen.speedup, remaining, c, alpha)) * remaining / c).tolist()
        for alpha in discounts
    ]
    return {
        "name": chosen.name,
        "holding_cost": c,
        "remaining": list(remaining),
        "discounts": list(discounts),
        "rents": list(rents),
        "widths": widths,
        "limit": [cheapest_width(chosen.speedup, c, rent) for rent in rents],
        "indices": indices,
    }


def cheapest_width(speedup: Speedup, weight: float, rent: float) -> float:
    """argmin over k ≥ 1 of (c + r·k)/s(k), by looking: no derivative and no formula of a family."""
    z = np.linspace(0.0, np.log(WIDEST), FINE)
    cost = np.log((weight + rent * np.exp(z)) / np.asarray(speedup(np.exp(z))))
    best = int(np.argmin(cost))
    if best in {0, FINE - 1}:
        return float(np.exp(z[best]))
    before, here, after = cost[best - 1 : best + 2]
    shift = 0.5 * (before - after) / (before - 2.0 * here + after)
    return float(np.exp(z[best] + shift * (z[1] - z[0])))


def indexable(
    speedup: dict[str, Any], weight: float, discounts: Sequence[float], sizes: int, prices: int
) -> dict[str, Any]:
    """On a grid of sizes and prices: how often the action falls with the price, and is really optimal.

    Passive states are those with action 0. They grow with the price if no job that waits at one price is
    served at a higher one. `worst_loss` is how much cheaper any width of a grid is than the action chosen.
    """
    s = Speedup.of(speedup)
    x = np.geomspace(0.01, 100.0, sizes)
    l = np.geomspace(1e-5, 1e3, prices)
    steps = falling = passive = rises = 0
    rise, loss, free = 0.0, 0.0, 1.0
    for alpha in discounts:
        k = np.asarray(optimal_action(s, x[:, None], weight, l[None, :], alpha, constant=True))
        free_to_change = np.asarray(optimal_action(s, x[:, None], weight, l[None, :], alpha))
        rises += int((free_to_change[:, 1:] > free_to_change[:, :-1] * (1.0 + 1e-9)).sum())
        steps += k[:, 1:].size
        falling += int((k[:, 1:] <= k[:, :-1] * (1.0 + 1e-9)).sum())
        passive += int(((k[:, :-1] > 0.0) | (k[:, 1:] == 0.0)).sum())
        for constant in (True, False):
            checked = indexability(s, x, weight, alpha, l, constant=constant)
            rise, free = max(rise, checked.worst_rise), min(free, checked.free_share)
        loss = max(loss, _worst_loss(s, weight, alpha, x, l, k))
    return {
        "steps": steps,
        "falling": falling,
        "passive": passive,
        "rises": rises,
        "worst_rise": rise,
        "free_share": free,
        "worst_loss": loss,
    }


def _worst_loss(
    speedup: Speedup, weight: float, alpha: float, x: FloatArray, l: FloatArray, action: FloatArray
) -> float:
    """By how much of its cost the best width of a grid, or waiting, beats the chosen action."""
    widths = np.geomspace(1.0, WIDEST, 400)

    def cost(k: FloatArray, size: FloatArray, price: FloatArray) -> FloatArray:
        served = (weight + price * k / alpha) * -np.expm1(-alpha * size / np.asarray(speedup(k)))
        return np.asarray(served)

    worst = 0.0
    for row, size in zip(action, x, strict=True):
        wide = cost(widths[:, None], size, l[None, :]).min(axis=0)
        least = np.minimum(wide, weight)
        mine = np.where(row > 0.0, cost(np.maximum(row, 1.0), size, l), weight)
        worst = max(worst, float((mine / least - 1.0).max()))
    return worst


def values(job_class: int, discount: float, sizes: int) -> dict[str, Any]:
    """V(x) over the size at a few prices: the least cost, that of one action for life, and by small steps."""
    chosen = paper_workload().classes[job_class]
    s, c, x = chosen.speedup, chosen.holding_cost, np.linspace(0.0, 8.0, sizes)
    prices = [0.02, 0.1, 0.5]
    found = {
        name: [np.asarray(least_cost(s, x, c, l, discount, constant=held)).tolist() for l in prices]
        for name, held in (("optimal", False), ("held", True))
    }
    steps = [by_steps(s, c, l, discount, x) for l in prices]
    return {"name": chosen.name, "sizes": x.tolist(), "prices": prices, "by_steps": steps, **found}


def by_steps(speedup: Speedup, c: float, l: float, discount: float, x: FloatArray) -> list[float]:
    """V by value iteration: the best of many widths, held for a small step of the size, again and again."""
    widths, parts = np.geomspace(1.0, WIDEST, 2000), 25
    spent = -np.expm1(-discount * (x[1] - x[0]) / parts / np.asarray(speedup(widths)))
    now, found = (c + l * widths / discount) * spent, [0.0]
    for _ in x[1:]:
        value = found[-1]
        for _ in range(parts):
            value = min(float((now + (1.0 - spent) * value).min()), c)
        found.append(value)
    return found


def action_map(job_class: int, discount: float, sizes: int, prices: int) -> dict[str, Any]:
    """Optimal actions over remaining size and price, for a picture."""
    chosen = paper_workload().classes[job_class]
    x, l = np.geomspace(0.03, 30.0, sizes), np.geomspace(0.003, 300.0, prices)
    k = optimal_action(chosen.speedup, x[:, None], chosen.holding_cost, l[None, :], discount)
    return {"name": chosen.name, "sizes": x.tolist(), "prices": l.tolist(), "cores": np.asarray(k).tolist()}


def allocations(cores: int, states: int, discounts: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """The discounted Whittle policy beside WHAM on random states: by how much they differ.

    Half of the states have fewer jobs than cores, half as many or more; sizes are drawn from the laws.
    """
    rng = np.random.default_rng(seed)
    wham = Policy.of("wham")
    policies = [Policy.of(f"whittle:alpha={alpha}") for alpha in discounts]
    found = []
    for state in range(states):
        crowded = state % 2 == 1
        low, high = (cores, 2.5 * cores) if crowded else (1.0, cores - 1.0)
        count = round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))
        jobs = _random_jobs(paper_workload(cores).classes, cores, count, rng)
        ours = wham.allocate(jobs, cores).cores
        gaps = [np.abs(policy.allocate(jobs, cores).cores - ours) for policy in policies]
        found.append(
            {
                "jobs": count,
                "crowded": crowded,
                "largest": [float(gap.max()) for gap in gaps],
                "moved": [float(gap.sum()) / 2.0 / cores for gap in gaps],
                "changed": [int((gap > CHANGED).sum()) for gap in gaps],
            }
        )
    return found


def _random_jobs(classes: Sequence[JobClass], cores: int, count: int, rng: np.random.Generator) -> Jobs:
    index = rng.integers(0, len(classes), count)
    remaining = np.array([float(classes[i].size.sample(rng, 1)[0]) for i in index])
    return Jobs.of(paper_workload(cores), index, remaining)
