"""The Erlang law: a sum of independent exponential stages; squared coefficient of variation 1/stages.

With k stages of rate μ each, E X = k/μ and E[X^r] = k(k+1)…(k+r−1)/μ^r.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.catalog.spec import Count, Positive, positive
from malleable.contracts import Distribution
from malleable.distributions.base import gamma_ages, phases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from malleable.contracts import FloatArray


def _stage_rate(given: Mapping[str, Any]) -> float:
    """The rate of a stage, stages/mean."""
    stages = given.get("stages")
    # Stages that are no number are reported under their own key, when the field is checked.
    return (stages if isinstance(stages, int) and stages > 0 else 1) / positive("mean")(given)


@dataclass(frozen=True)
class Erlang(Distribution):
    """Sum of a number of exponential stages, given the rate of each stage (or the mean of the sum)."""

    stages: Count
    rate: Positive

    alternatives: ClassVar = {"mean": ("rate", _stage_rate)}

    def moment(self, order: int) -> float:
        return prod((self.stages + i) / self.rate for i in range(order))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.gamma(self.stages, 1.0 / self.rate, size)

    def survival(self, x: FloatArray) -> FloatArray:
        return gamma_ages.survival(self.stages, self.rate * np.asarray(x, dtype=float))

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        return gamma_ages.mean_remaining(self.stages, self.rate * np.asarray(done, dtype=float)) / self.rate

    def scaled(self, factor: float) -> Erlang:
        return Erlang(self.stages, self.rate / factor)

    def phase_type(self) -> tuple[FloatArray, FloatArray] | None:
        if self.stages > phases.MOST_PHASES:
            return None
        return phases.serial(np.full(self.stages, self.rate), np.ones(self.stages - 1))
