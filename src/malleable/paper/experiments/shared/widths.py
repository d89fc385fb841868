"""On how many cores work is done, as cells: shares of the work, with intervals, and distributions.

A run keeps a histogram of the work done by the number of cores that it was done on, in bins of 1/64 of an
octave. The run is cut into batches after a warm-up, and the histogram of each batch is the difference of two
looks. A share is a ratio of sums; its interval is that of batch means, lengthened where batches are
correlated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from malleable.contracts import Policy
from malleable.engine.records import bin_edges
from malleable.engine.run import Run
from malleable.model import paper_workload
from malleable.results.class_result import interval
from malleable.simulation import program
from malleable.sources import stream
from malleable.statistics.intervals import Basis, Estimate, fit
from malleable.theory.fluid import Fluid, price_gradients
from malleable.theory.refined_mean_field import fluctuations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.contracts import FloatArray
    from malleable.model import JobClass

BATCHES = 20
WARMUP = 0.2
"""Share of the run that is left out: it starts empty, when jobs have many cores."""
THIN = 1e-6
"""Share of the work below which a bin is not kept."""


class Window(NamedTuple):
    """Work of a class (of all classes if None) done on `low` to `high` cores."""

    of: int | None
    low: float
    high: float


def measured(
    policy: str,
    cores: int,
    load: float,
    jobs: int,
    seed: int,
    windows: Sequence[Sequence[Any]],
    *,
    distribution: bool = False,
) -> dict[str, Any]:
    """Shares of the work in windows [class or None, low, high], and the distribution by class if wanted."""
    batches = histograms(policy, cores, load, jobs, seed)
    shares = [interval(share(batches, Window(*window))) for window in windows]
    found = {"cores": cores, "load": load, "jobs": jobs, "seed": seed, "shares": shares}
    if distribution:
        found["distribution"] = [cumulative(one) for one in batches.sum(axis=0)]
    return found


def histograms(policy: str, cores: int, load: float, jobs: int, seed: int) -> FloatArray:
    """Work by class and width in each batch, (batches, classes, bins)."""
    workload = paper_workload(cores, load)
    made = program(Policy.of(policy), workload, float(cores))
    run = Run(
        workload, float(cores), made, jobs=jobs, source=stream(workload, seed), name=policy, widths=True
    )
    looks = []
    for end in np.linspace(WARMUP * jobs, jobs, BATCHES + 1):
        run.extend(int(end))
        looks.append(run.outcome().records.width_histogram)
    return np.diff(looks, axis=0)


def share(batches: FloatArray, window: Window) -> Estimate:
    """The share of the work that lies in the window; within a bin work is taken as evenly spread."""
    work = batches.sum(axis=1) if window.of is None else batches[:, window.of]
    edges = bin_edges()
    # A bin counts by the part of it that the window covers.
    covered = np.clip(
        (np.minimum(edges[1:], window.high) - np.maximum(edges[:-1], window.low)) / np.diff(edges), 0.0, 1.0
    )
    inside, total = work @ covered, work.sum(axis=1)
    # All work of many bins, added up in another order, may exceed itself by a last digit.
    mean = min(float(inside.sum() / total.sum()), 1.0)
    influence = (inside - mean * total) / total.mean()
    none = Basis(np.zeros((len(work), 0)), np.zeros(0))
    found = fit(mean, influence, none, 0.95, independent=False)
    low, high = np.clip([found.low, found.high], 0.0, 1.0)
    return Estimate(mean, float(low), float(high))


def cumulative(work: FloatArray) -> dict[str, list[float]]:
    """Widths, and the share of the work done on at most that many cores."""
    kept = np.flatnonzero(work > THIN * work.sum())
    edges = bin_edges()
    first, last = int(kept[0]), int(kept[-1])
    below = np.cumsum(work[first : last + 1]) / work.sum()
    return {"width": edges[first : last + 2].tolist(), "share": [0.0, *below.tolist()]}


def predicted(cores: list[int], load: float, near: list[float]) -> dict[str, Any]:
    """WHAM's widths k_i* in the limit, and the shares of the work near them, by ε, class and n.

    The mean field's fluctuations give the price a relative standard deviation in proportion to 1/√n; its
    logarithm is taken as normal, and all work as done at the prices of an average moment.
    """
    n = 1024.0
    fluid = Fluid(paper_workload(n, load), Policy.of("wham"), n)
    point = fluid.fixed_point()
    W, _ = fluctuations(fluid, point)
    gradient, _ = price_gradients(point.jobs, fluid.response(point.market).cores)
    spread = float(np.sqrt(gradient @ fluid.by_class(fluid.by_class(W).T) @ gradient)) / point.price
    shares = [
        [
            [_within(c, k, epsilon, point.price, spread * (n / m) ** 0.5) for m in cores]
            for c, k in zip(fluid.workload.classes, point.widths, strict=True)
        ]
        for epsilon in near
    ]
    names = list(fluid.workload.class_names)
    return {"names": names, "widths": point.widths.tolist(), "spread": spread * n**0.5, "shares": shares}


def _within(job_class: JobClass, width: float, near: float, price: float, spread: float) -> float:
    """P((1 − ε)k* ≤ k ≤ (1 + ε)k*): a job wants k cores at the price c s'/(s − k s')."""
    k = np.array([1.0 - near, 1.0 + near]) * width
    s, slope = job_class.speedup.derivatives(k)[:2]
    dear, cheap = np.log(job_class.holding_cost * slope / (s - k * slope) / price) / spread
    return float(ndtr(dear) - ndtr(cheap))
