"""The deterministic law: always the same value, so E[X^r] = value^r."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive
from malleable.contracts import Distribution
from malleable.distributions.base.float_limits import power

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Deterministic(Distribution):
    """Always the same value."""

    value: Positive

    def moment(self, order: int) -> float:
        return power(self.value, order)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:  # noqa: ARG002 - nothing is random
        return np.full(size, self.value)

    def scaled(self, factor: float) -> Deterministic:
        return Deterministic(self.value * factor)
