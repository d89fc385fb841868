"""Made-up values of cells: comparisons as `malleable compare --json` has them, with costs to order."""

from __future__ import annotations


def interval(mean, half):
    """An estimate with its interval."""
    return {"mean": mean, "low": mean - half, "high": mean + half}


def result(cost, half=1e-4, *, stable=True, bound=0.15, jobs=1000, name="some"):
    """The parts of a result's document that findings read."""
    return {
        "policy": name,
        "cost": interval(cost, half),
        "bound": bound,
        "gap": cost / bound - 1.0,
        "overload": 0.0,
        "stable": stable,
        "jobs": jobs,
        "batches": 100,
        "confidence": 0.95,
        "control_variates": {"number": 0},
        "classes": [
            {"name": f"class-{i}", "response_time": interval(cost, half)} for i in (1, 2, 3)
        ],
    }  # fmt: skip


def comparison(costs, half=1e-4, unstable=(), bound=0.15):
    """Policies with these costs, the first one being the baseline; differences are known to half as much."""
    base = next(iter(costs.values()))
    return {
        "results": {
            p: result(c, half, stable=p not in unstable, bound=bound, name=p) for p, c in costs.items()
        },
        "differences": {p: interval(c - base, 0.5 * half) for p, c in list(costs.items())[1:]},
    }
