"""What figures and verdicts of e09_rivals both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, failed
from malleable.paper.experiments.e09_rivals.cells import (
    PLANNED,
    WHAM,
    cores_of,
    groups,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values
POLICIES: dict[str, tuple[str, int]] = {
    WHAM: ("WHAM", 0),
    PLANNED: ("FW-CAM", 1),
    "equi": ("EQUI", 2),
    "greedy": ("GREEDY", 3),
    "greedy:weight=mu": ("GREEDY, w = μ", 11),
    "greedy:weight=c": ("GREEDY, w = c", 4),
    "greedy:weight=cmu": ("GREEDY, w = cμ", 12),
    "greedy:weight=c/x": ("GREEDY, w = c/x", 5),
    "hell": ("HELL", 13),
    "knee": ("KNEE", 14),
    "hesrpt": ("A-heSRPT", 7),
    "pollux": ("Pollux", 15),
    "sia": ("Sia", 10),
    "lpf": ("LPF", 9),
}
"""Names and colours."""
START = 16
"""From this many cores on, a + b/n + c/n² is fitted to differences from WHAM; for WHAM itself from 64 on."""
FALLS = -0.1
"""A difference from WHAM that falls with this power of n, or faster, may vanish in the end."""


class Rival:
    """What the simulations say about one policy over n."""

    def __init__(self, cores: Sequence[int], found: Sequence[Any], policy: str) -> None:
        self.cores = tuple(cores)
        self.errors = tuple(v["error"] if failed(v) else "" for v in found)
        self.results = tuple(None if failed(v) else v["results"][policy] for v in found)
        self.stable = tuple(r is not None and bool(r["stable"]) for r in self.results)
        self.costs = tuple(Estimate() if r is None else read_interval(r["cost"]) for r in self.results)
        self.differences = tuple(
            read_interval(v["differences"][policy])
            if not failed(v) and policy in v["differences"] else Estimate()
            for v in found
        )  # fmt: skip

    def ratios(self, lowest: float) -> tuple[Estimate, ...]:
        """Costs over the bound; none where the policy is unstable."""
        return tuple(
            Estimate(*(v / lowest for v in (e.mean, e.low, e.high))) if good else Estimate()
            for e, good in zip(self.costs, self.stable, strict=True)
        )

    def margin(self, lowest: float) -> Estimate:
        """The limit of its difference from WHAM, over the bound."""
        found, _ = ev.limit(self.cores, self._known, START)
        return Estimate(*(v / lowest for v in (found.mean, found.low, found.high)))

    @property
    def growth(self) -> Estimate:
        """The power of n with which its difference from WHAM grows or falls."""
        return ev.power(self.cores, self._known)[0]

    @property
    def _known(self) -> list[Estimate]:
        return [d if good else Estimate() for d, good in zip(self.differences, self.stable, strict=True)]


def rival_of(policy: str, group: str, effort: Effort, values: Values) -> Rival:
    """A policy's results by number of cores."""
    cores = cores_of(effort, group)
    return Rival(cores, [values[f"{group}-{n}"] for n in cores], policy)


def wham_of(effort: Effort, values: Values) -> Rival:
    """WHAM, from its longest runs."""
    group = next(iter(groups(effort)))
    cores = cores_of(effort, group)
    return Rival(cores, [values[f"{group}-{n}"] for n in cores], WHAM)
