"""How sure a replay is: the log resampled by blocks of time, and replayed again.

A log is one sample. Blocks of equal length (weeks if there are eight or more, else days, else tenths of the
log) are drawn with replacement and put one behind another; every policy sees the jobs of each such log. The
spread of the costs is how much they would differ in another such time, if what happens in one block has
little to do with what happened in the one before (moving-block bootstrap, Künsch 1989). Intervals are
cost ± z·deviation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.errors import ParameterError
from malleable.replays.running import run_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.contracts import FloatArray
    from malleable.model.job_list import JobList

WEEK, DAY = 7 * 86400.0, 86400.0
FEWEST_BLOCKS = 8
TENTH = 10
FEWEST = 2
Z = 1.959963984540054
"""The 97.5 % quantile of the normal law."""


class Resampled(NamedTuple):
    """Costs of every policy on every resampled log."""

    policies: tuple[str, ...]
    costs: FloatArray
    """(logs, policies)."""
    block: float
    """The length of a block in seconds."""

    def half_width(self, policy: str, baseline: str | None = None) -> float:
        """Half of the 95 % interval of a cost, or of a difference of costs on the same logs."""
        values = self.costs[:, self.policies.index(policy)]
        if baseline is not None:
            values = values - self.costs[:, self.policies.index(baseline)]
        return Z * float(values.std(ddof=1))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "logs": len(self.costs),
            "block": self.block,
            "costs": {name: self.costs[:, i].tolist() for i, name in enumerate(self.policies)},
        }


def check_logs(logs: int) -> None:
    """Refuse numbers of resampled logs that tell nothing; 0 is none."""
    if logs and logs < FEWEST:
        raise ParameterError(f"cannot tell a spread from {logs} resampled logs", "ask for 20 or more")


def block_length(span: float) -> float:
    """How long blocks are."""
    for length in (WEEK, DAY):
        if span >= FEWEST_BLOCKS * length:
            return length
    return span / TENTH


def resample(jobs: JobList, rng: np.random.Generator, length: float) -> JobList:
    """Jobs of a log made of blocks drawn with replacement; times within a block stay as they are."""
    first = float(jobs.times[0])
    count = max(int(np.ceil((float(jobs.times[-1]) - first) / length)), 1)
    edges = np.searchsorted(jobs.times, first + length * np.arange(count + 1))
    edges[-1] = len(jobs)
    drawn = rng.integers(0, count, count)
    rows = np.concatenate([np.arange(edges[b], edges[b + 1]) for b in drawn])
    shift = np.repeat((np.arange(count) - drawn) * length, edges[drawn + 1] - edges[drawn])

    def picked(column: Any) -> Any:
        if isinstance(column, np.ndarray):
            return column[rows]
        return None if column is None else tuple(column[i] for i in rows)

    columns = ("classes", "sizes", "weights", "cores", "run_times", "estimates", "waits", "users", "ids")
    taken = {name: picked(getattr(jobs, name)) for name in columns}
    return replace(jobs, times=jobs.times[rows] + shift, **taken)


def resampled(
    jobs: JobList,
    cores: float,
    policies: Sequence[Any],
    names: Sequence[str],
    logs: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Resampled | None:
    """The costs of the policies on so many resampled logs; None if it was interrupted."""
    span = float(jobs.times[-1] - jobs.times[0])
    if span <= 0.0:
        raise ParameterError("all jobs come at once: there are no blocks of time to resample")
    rng, length = np.random.default_rng(seed), block_length(span)
    costs = np.empty((logs, len(policies)))
    for i in range(logs):
        other = resample(jobs, rng, length)
        while not len(other):
            other = resample(jobs, rng, length)
        for j, policy in enumerate(policies):
            found = run_policy(policy, other, cores)
            if found is None:
                return None
            costs[i, j] = found.cost
        if progress is not None:
            progress(i + 1)
    return Resampled(tuple(names), costs, length)
