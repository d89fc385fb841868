"""What figures and verdicts of e15_few_cores both read from the values of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import failed
from malleable.paper.experiments.e15_few_cores.cells import (
    GAP_POLICIES,
    Where,
    gap_settings,
    key_of,
    limit_settings,
    load_settings,
    order_settings,
    seeds_of,
    study_settings,
)
from malleable.paper.experiments.e15_few_cores.held_out import PAIRS, setting
from malleable.paper.experiments.e15_few_cores.systems import WORKLOADS
from malleable.paper.experiments.shared.paired_gains import Gain, gain
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Effort, Values

WHAM, IMPROVED, TRUSTING = GAP_POLICIES


@dataclass(frozen=True)
class Point:
    """A setting and the value of its cell."""

    where: Where
    value: Any

    @property
    def place(self) -> str:
        """The setting in words."""
        name, cores, load = self.where
        return f"{WORKLOADS[name][0]}, n = {cores}, ρ = {load:g}"

    def gap(self, policy: str) -> float:
        """How far a policy lies above the optimum, in per cent."""
        real = self.value["real"]
        return 100.0 * float(real["policies"][policy]["cost"] / real["optimum"] - 1.0)

    def term(self, which: str) -> float:
        """(cost − V*)·n of the exact chain: what the 1/n term is to be compared with."""
        return float((self.value[which] - self.value["bound"]) * self.where[1])


def _points(what: str, settings: list[Where], values: Values) -> list[Point]:
    found = [Point(where, values[key_of(what, *where)]) for where in settings]
    return [point for point in found if not failed(point.value)]


def gap_points(effort: Effort, values: Values) -> list[Point]:
    """Exact gaps."""
    return _points("gap", gap_settings(effort), values)


def order_points(effort: Effort, values: Values) -> dict[str, list[Point]]:
    """1/n terms by system, from few to many cores."""
    found: dict[str, list[Point]] = {}
    for point in _points("order", order_settings(effort), values):
        found.setdefault(point.where[0], []).append(point)
    return found


def extrapolated(points: list[Point], which: str) -> float:
    """The limit of the exact terms, by the two largest systems (Richardson)."""
    if len(points) < 2:
        return nan
    small, large = points[-2:]
    n, m = small.where[1], large.where[1]
    return (large.term(which) * m - small.term(which) * n) / (m - n)


def paired(pair: str, name: str, value: Any) -> Gain:
    """The gain of a pair of policies from the value of a cell; 0 where one steps back to the other."""
    if not failed(value) and "results" not in value:
        return Gain(name, Estimate(0.0, 0.0, 0.0), {"jobs": 0})
    return gain(name, PAIRS[pair].policy, value, PAIRS[pair].base)


def held_out_gains(effort: Effort, pair: str, values: Values) -> list[Gain]:
    """Gains on the held-out workloads."""
    found = []
    for seed in seeds_of(effort, pair):
        document, cores, load = setting(seed)
        name = f"seed {seed}: {len(document['classes'])} classes, n = {cores}, ρ = {load:.2f}"
        found.append(paired(pair, name, values[f"held-out-{pair}-{seed}"]))
    return found


def stepped_back(effort: Effort, pair: str, values: Values) -> int:
    """On how many held-out workloads a policy is the one that it improves."""
    found = [values[f"held-out-{pair}-{seed}"] for seed in seeds_of(effort, pair)]
    return sum(not failed(value) and bool(value["note"]) for value in found)


def mean_gain(gains: list[Gain]) -> Estimate:
    """The mean over workloads, each of which has an error of its own (95 %)."""
    known = [one.of for one in gains if one.result is not None]
    if not known:
        return Estimate()
    mean = sum(e.mean for e in known) / len(known)
    half = sum(e.half_width**2 for e in known) ** 0.5 / len(known)
    return Estimate(mean, mean - half, mean + half)


def limit_points(effort: Effort, values: Values) -> list[Point]:
    """Costs over the number of cores."""
    return _points("limit-at-ease", limit_settings(effort), values)


def load_points(effort: Effort, pair: str, values: Values) -> list[Point]:
    """Costs over the load."""
    return _points(f"load-{pair}", [where for one, where in load_settings(effort) if one == pair], values)


def study_gains(effort: Effort, values: Values) -> dict[Where, Gain]:
    """Gains on the settings of the study with sizes known."""
    points = _points("study-trusting", study_settings(effort), values)
    return {point.where: paired("trusting", point.place, point.value) for point in points}
