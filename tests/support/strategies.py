"""Random inputs shared by the tests, and naive references that share no code with the library.

A speedup comes as a `Case`: the library's object beside a plain function of k ≥ 1 written from MODEL.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Speedup
from malleable.model import Workload
from malleable.model.jobs import Jobs

TINY_GAIN = 1e-9


@dataclass(frozen=True)
class Case:
    """A speedup and an independent formula of it."""

    speedup: Speedup
    reference: Callable[[float], float]

    def __repr__(self) -> str:
        return f"Case({self.speedup!r})"


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats in [low, high], spread evenly over the orders of magnitude when the range has several."""
    if low > 0.0 and high / low > 50.0:
        return st.floats(math.log(low), math.log(high)).map(lambda x: min(max(math.exp(x), low), high))
    return st.floats(low, high)


# --- references ------------------------------------------------------------------------------------------


def power(k: float, *, exponent: float) -> float:
    return k**exponent


def amdahl(k: float, *, sequential: float) -> float:
    return 1.0 / (sequential + (1.0 - sequential) / k)


def usl(k: float, *, contention: float, coherency: float) -> float:
    return k / (1.0 + contention * (k - 1.0) + coherency * k * (k - 1.0))


def rooftop(k: float, *, cores: float) -> float:
    return min(k, cores)


def linear_power(k: float, *, cores: float, exponent: float) -> float:
    return k if k <= cores else cores * (k / cores) ** exponent


def table(k: float, *, cores: list[float], speedup: list[float], hull: bool = False) -> float:
    """Straight lines between the points; with `hull` the best mixture of widths that average at most k."""
    points = list(zip(cores, speedup, strict=True))
    if not hull:
        for (a, s_a), (b, s_b) in itertools.pairwise(points):
            if a <= k <= b:
                return s_a + (s_b - s_a) * (k - a) / (b - a)
        return speedup[-1]
    best = max(s for width, s in points if width <= k)
    for a, s_a in points:
        for b, s_b in points:
            if a <= k < b:
                best = max(best, s_a + (s_b - s_a) * (k - a) / (b - a))
    return best


def concave_function(k: Any) -> Any:
    return 1.0 + 2.0 * (1.0 - np.exp(-(np.asarray(k, dtype=float) - 1.0) / 3.0))


def s_shaped(k: Any) -> Any:
    """Slow at first, steep around nine cores, saturating: not concave, most efficient well above one."""
    x = np.asarray(k, dtype=float)
    return 1.0 + 12.0 * (x**4 - 1.0) / (x**4 - 1.0 + 9.0**4)


def with_dip(k: Any) -> Any:
    """Grows, falls around six cores, then grows on: NUMA in a nutshell."""
    x = np.asarray(k, dtype=float)
    return x**0.7 - 1.2 * np.exp(-((x - 6.0) ** 2)) + 1.2 * np.exp(-25.0)


def falling(k: Any) -> Any:
    """Rises to a peak at 5.4 cores and falls slowly, never to zero."""
    x = np.asarray(k, dtype=float)
    return 1.0 / (0.1 + 0.9 * (x + 5.4**2 / x) / (1.0 + 5.4**2))


def scalar_only(k: float) -> float:
    """A function that cannot take arrays."""
    return 1.0 if k < 1.0 else math.pow(k, 0.6)


FUNCTIONS = {f.__name__: f for f in (concave_function, s_shaped, with_dip, falling, scalar_only)}


def custom(k: float, *, function: Callable[[float], float], limit: float = 2.0**20) -> float:
    return float(function(min(k, limit)))


REFERENCES: dict[str, Callable[..., float]] = {
    "power": power,
    "amdahl": amdahl,
    "usl": usl,
    "rooftop": rooftop,
    "linear_power": linear_power,
    "table": table,
    "custom": custom,
}

# --- parameters ------------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn, *, integer: bool = False, monotone: bool = False) -> dict[str, Any]:
    """Measured tables of every awkward shape: falling, flat, super-linear, one point, close to collinear."""
    steps = st.integers(1, 6).map(float) if integer else numbers(0.25, 9.0)
    gaps = draw(st.lists(steps, min_size=0, max_size=6))
    cores = [1.0, *(1.0 + np.cumsum(gaps)).tolist()]
    factors = st.one_of(
        st.just(1.0), numbers(1.0 if monotone else 0.4, 3.0), numbers(1.0 if monotone else 0.99, 1.01)
    )
    speeds = [1.0]
    for _ in gaps:
        speeds.append(speeds[-1] * draw(factors))
    hull = draw(st.booleans()) or any(b < a for a, b in itertools.pairwise(speeds))
    return {"cores": cores, "speedup": speeds, **({"hull": True} if hull else {})}


PARAMETERS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "power": st.fixed_dictionaries({"exponent": numbers(0.02, 0.98)}),
    "amdahl": st.fixed_dictionaries({"sequential": numbers(0.002, 0.98)}),
    "usl": st.one_of(
        st.fixed_dictionaries({"contention": numbers(0.0, 0.95), "coherency": numbers(1e-6, 2.0)}),
        st.fixed_dictionaries({"contention": numbers(0.01, 0.95), "coherency": st.just(0.0)}),
        st.fixed_dictionaries({"contention": st.just(0.0), "coherency": numbers(1e-6, 2.0)}),
    ),
    "rooftop": st.fixed_dictionaries({"cores": st.one_of(st.just(1.0), numbers(1.0, 60.0))}),
    "linear_power": st.fixed_dictionaries(
        {"cores": st.one_of(st.just(1.0), numbers(1.0, 20.0)), "exponent": numbers(0.02, 0.98)}
    ),
    "table": tables(),
    "custom": st.fixed_dictionaries(
        {"function": st.sampled_from(list(FUNCTIONS.values())), "limit": st.just(512.0)}
    ),
}


def cases(kind: str, parameters: st.SearchStrategy[dict[str, Any]] | None = None) -> st.SearchStrategy[Case]:
    """Speedups of one family with their references."""

    def build(keys: dict[str, Any]) -> Case:
        made = catalog.find("speedups", kind).from_parameters(keys)
        return Case(made, lambda k: REFERENCES[kind](k, **keys))

    return (PARAMETERS[kind] if parameters is None else parameters).map(build)


SMOOTH = ("power", "amdahl", "usl")
CONCAVE = ("power", "amdahl", "usl", "rooftop", "linear_power")
FAST = (*CONCAVE, "table")


def speedups(*kinds: str) -> st.SearchStrategy[Speedup]:
    """Speedups of the given families."""
    return st.one_of([cases(kind).map(lambda case: case.speedup) for kind in kinds])


def job_class(name: str, rate: float, mean: float, speedup: Any, cost: float) -> dict[str, Any]:
    """A class with Poisson arrivals and exponential sizes, as `Workload.from_dict` wants it."""
    return {
        "name": name,
        "arrivals": {"kind": "poisson", "rate": rate},
        "size": {"kind": "exponential", "mean": mean},
        "speedup": speedup,
        "holding_cost": cost,
    }


def one_class(speedup: Any, *, rate: float = 1.0, mean: float = 1.0, cost: float = 1.0) -> Workload:
    """A workload of a single class, called `only`."""
    return Workload.from_dict({"classes": [job_class("only", rate, mean, speedup, cost)]})


@st.composite
def workloads(
    draw: st.DrawFn,
    *kinds: str,
    max_classes: int = 4,
    costs: st.SearchStrategy[float] | None = None,
) -> Workload:
    """Workloads of mixed families; rates, sizes and costs over two orders of magnitude."""
    size = draw(st.integers(1, max_classes))
    rows = [
        job_class(
            f"c{i}",
            draw(numbers(0.1, 10.0)),
            draw(numbers(0.1, 10.0)),
            draw(speedups(*kinds)),
            draw(numbers(0.1, 10.0) if costs is None else costs),
        )
        for i in range(size)
    ]
    return Workload.from_dict({"name": "random", "classes": rows})


@st.composite
def jobs_of(
    draw: st.DrawFn, workload: Workload, *, max_jobs: int = 12, weights: bool = False, min_jobs: int = 0
) -> Jobs:
    """Jobs with distinct remaining sizes and distinct ages, so that no tie is left to the order of rows."""
    size = draw(st.integers(min_jobs, max_jobs))
    classes = draw(st.lists(st.integers(0, len(workload.classes) - 1), min_size=size, max_size=size))
    remaining = draw(st.permutations([0.13 * 1.37**i for i in range(size)]))
    age = draw(st.permutations([float(i) for i in range(size)]))
    weight = None
    if weights and draw(st.booleans()):
        # Three digits, so that weights are equal or clearly different.
        digits = numbers(1e-6, 1e6).map(lambda x: float(f"{x:.3g}"))
        weight = draw(st.lists(digits, min_size=size, max_size=size))
    return Jobs.of(workload, classes, remaining, age=age, weight=weight)


def permuted(jobs: Jobs, order: list[int]) -> Jobs:
    """The same jobs in another order of rows."""
    index = np.array(order, dtype=np.intp)
    return Jobs.of(
        jobs.workload,
        jobs.class_index[index],
        jobs.remaining[index],
        weight=jobs.weight[index] if jobs.own_weights else None,
        age=jobs.age[index],
        ids=[jobs.ids[i] for i in order],
    )
