"""GREEDY*: GREEDY that breaks ties in favour of the less parallelizable job (Berg et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from malleable.policies.greedy import Greedy


@dataclass(frozen=True)
class GreedyStar(Greedy):
    """GREEDY with ties going to the less parallelizable job: the one that gains less from a second core."""

    needs = "speedups; mean sizes with weight mu or cmu, work left with c/x"

    shy: ClassVar[bool] = True
