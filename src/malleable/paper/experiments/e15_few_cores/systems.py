"""The systems of the experiment: those of the study behind the policies, and what it found on them."""

from __future__ import annotations

from typing import Any, NamedTuple

from malleable.paper.experiments.shared.workloads import (
    exponential,
    four_classes,
    job_class,
    short_and_long,
    sizes_of,
)

HALF, AMDAHL = {"kind": "power", "exponent": 0.5}, {"kind": "amdahl", "sequential": 0.1}
COSTS = (0.4, 1.0, 1.5, 3.0)


def _pair(name: str, *rows: tuple[float, float, dict[str, Any], float]) -> dict[str, Any]:
    """Classes by rate, mean size, speedup and holding cost; sizes are exponential."""
    classes = [
        job_class(f"class-{i}", sizes_of("exponential", mean), speedup, cost, rate)
        for i, (rate, mean, speedup, cost) in enumerate(rows, 1)
    ]
    return {"name": name, "classes": classes}


WORKLOADS: dict[str, tuple[str, Any]] = {
    "weights": ("weights 0.4 and 3", _pair("weights", (1.0, 1.0, HALF, 0.4), (1.0, 1.0, AMDAHL, 3.0))),
    "sizes": ("short and long jobs", short_and_long(ratio=20.0)),
    "two": ("classes 1 and 2 of the paper", exponential("class-1", "class-2")),
    "shapes": (
        "two speedups",
        _pair("shapes", (1.0, 1.0, HALF, 1.0), (2.0, 0.5, {"kind": "amdahl", "sequential": 0.2}, 2.0)),
    ),
    "four": ("four classes", four_classes("four", "exponential", COSTS)),
    "hyper": ("four, hyperexponential", four_classes("hyper", "hyperexponential", COSTS)),
    "paper": ("the paper's workload", "paper"),
}
"""Names and documents."""


class Known(NamedTuple):
    """What the study found, in per cent above the optimum: WHAM, and its own fit with two regimes."""

    wham: float
    fitted: float


BLIND_STUDY = {
    ("weights", 8, 0.7): Known(14.0, 0.41),
    ("weights", 8, 0.8): Known(14.2, 0.20),
    ("weights", 16, 0.9): Known(7.97, 0.26),
    ("sizes", 16, 0.25): Known(4.54, 0.10),
    ("sizes", 8, 0.5): Known(5.65, 0.15),
}
"""Sizes unknown. Its `paper-like` system and its four classes are not described well enough to repeat."""
LAST_DIGIT = 0.01
DIGITS = {("weights", 8, 0.7): 0.1, ("weights", 8, 0.8): 0.1}
"""A unit of the last digit of WHAM's gaps in the study, in points: in general, and with one decimal."""
SIZED_STUDY = {
    ("four", 12, 0.5): -0.50,
    ("four", 12, 0.7): -0.61,
    ("four", 12, 0.8): -0.62,
    ("hyper", 12, 0.5): -0.75,
    ("hyper", 12, 0.7): -1.21,
    ("hyper", 12, 0.8): -1.14,
    ("weights", 8, 0.7): -1.63,
    ("weights", 8, 0.9): -1.78,
    ("sizes", 8, 0.5): -3.17,
}
"""Sizes known: by how many per cent the study's fit is cheaper than `wham-discounted`."""
