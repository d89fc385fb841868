"""The least that any policy could cost if it knew all jobs, as cells and in figures: the finite-n bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Cell, failed
from malleable.paper.simulation_cells import described
from malleable.plots.figures import Series
from malleable.results.class_result import interval, read_interval
from malleable.simulation.jobs_bound import stationary_bound
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from malleable.paper.contracts import Effort, Values

STREAM = {"quick": 1_000, "normal": 25_000, "full": 100_000}
"""Jobs of each of four streams, by effort."""
MOST_CORES = 1024
"""On more cores the beginning and the end of such a stream cost more than the difference from V*."""
NAME = "least cost if all jobs were known"
COLOUR = 10


def known_jobs(
    cores: float, load: float, jobs: int, seed: int, workload: str | Mapping[str, Any] = "paper"
) -> dict[str, Any]:
    """The bound for given jobs, averaged over streams of the workload's jobs."""
    return interval(
        stationary_bound(described(workload, cores, load), cores, jobs=jobs, seed=seed, threads=1)
    )


def known_cells(cores: Iterable[int], load: float, effort: Effort, seed: int) -> list[Cell]:
    """The bound over n, on as few cores as it says something on."""
    jobs = STREAM[effort.name]
    run = {"load": load, "jobs": jobs, "seed": seed}
    return [
        Cell(f"known-{n}", known_jobs, {"cores": n, **run}, 4e-5 * jobs) for n in cores if n <= MOST_CORES
    ]


def known_bounds(cores: Sequence[int], values: Values) -> tuple[Estimate, ...]:
    """The bounds by n; nothing is known where none was computed."""
    found = [values.get(f"known-{n}") for n in cores]
    return tuple(Estimate() if failed(one) else read_interval(one) for one in found)


def above(cost: Estimate, least: Estimate) -> Estimate:
    """By which share a cost lies above a bound, with the noise of both."""
    ratio = cost.mean / least.mean
    noise = ratio * (cost.relative_half_width**2 + least.relative_half_width**2) ** 0.5
    return Estimate(ratio - 1.0, ratio - 1.0 - noise, ratio - 1.0 + noise)


def known_series(n: tuple[float, ...], least: Sequence[Estimate]) -> Series:
    """The bound as a second line beside V*."""
    return Series(NAME, n, tuple(one.mean for one in least), style="line", colour=COLOUR)
