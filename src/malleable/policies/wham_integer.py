"""WHAM on whole cores: steps along each class's integer hull in order of their price.

Every job gets its least width, then the step with the highest ν(k→k') = c(s'−s)/(k's − ks') is taken by all
jobs of its class while the cores last, and by as many as they allow at the end: the earliest,
who may be any size, so that the policy stays blind to sizes while N < n. Taking "the smallest price with
total ≤ n" literally would leave up to N_i − 1 cores idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from malleable.policies.wham import Wham


@dataclass(frozen=True)
class WhamInteger(Wham):
    """WHAM that gives whole cores only."""

    needs = "speedups; work left where jobs outnumber cores"

    whole_cores: ClassVar[bool] = True
