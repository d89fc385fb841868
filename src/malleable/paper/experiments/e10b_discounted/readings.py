"""What figures and verdicts of e10b_discounted both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from malleable.paper.experiments.shared.paired_gains import Gain, gain

if TYPE_CHECKING:
    from malleable.paper.contracts import Effort, Values


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
