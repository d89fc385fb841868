"""What figures and verdicts of e10b_discounted both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.paper.contracts import Effort, failed
from malleable.paper.experiments.e10b_discounted.cells import (
    MAP_CORES,
    RULE,
    fixed_policies,
    key_of,
    map_loads,
    whittles_of,
)
from malleable.paper.experiments.e10b_discounted.discounting import (
    random_setting,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LEVEL = 0.99
"""Confidence of a single comparison, and of all of them together."""


class Gain(NamedTuple):
    """How much cheaper (below 0) or dearer than WHAM a policy is, as a share of WHAM's cost."""

    name: str
    of: Estimate
    """With the interval of the simulation, 95 %."""
    result: Any
    """The policy's simulation; None where there is none."""

    def at(self, confidence: float) -> Estimate:
        """The same with an interval of another level."""
        return Estimate() if self.result is None else ev.widened(self.of, self.result, confidence)

    @property
    def percent(self) -> Estimate:
        """The same in percent."""
        return Estimate(*(100.0 * v for v in (self.of.mean, self.of.low, self.of.high)))


def gain(name: str, policy: str, value: Any) -> Gain:
    """The gain of a policy in a comparison with WHAM."""
    if failed(value):
        return Gain(name, Estimate(), None)
    wham = value["results"]["wham"]["cost"]["mean"]
    found = read_interval(value["differences"][policy])
    relative = Estimate(*(v / wham for v in (found.mean, found.low, found.high)))
    return Gain(name, relative, value["results"][policy])


def named_gain(what: str, workload: str, cores: int, load: float, policy: str, values: Values) -> Gain:
    """The gain on a workload that has a name."""
    name = f"{workload}, n = {cores}, ρ = {load:g}"
    return gain(name, policy, values[key_of(what, workload, cores, load)])


def random_gain(seed: int, values: Values) -> Gain:
    """The gain on a random workload."""
    _, cores, load = random_setting(seed)
    return gain(f"random {seed}, n = {cores}, ρ = {load:.2f}", RULE, values[f"random-{seed}"])


def over_loads(effort: Effort, values: Values, policy: str) -> list[Gain]:
    """One policy of the map at all its loads."""
    return [named_gain("map", "four", MAP_CORES, load, policy, values) for load in map_loads(effort)]


def all_over_alpha(effort: Effort, values: Values) -> list[Gain]:
    """Gains of all policies that have an α."""
    return [
        one._replace(name=f"{policy}; {one.name}")
        for policy in (*whittles_of(effort), *fixed_policies(effort), RULE)
        for one in over_loads(effort, values, policy)
    ]
