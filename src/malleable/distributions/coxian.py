"""The Coxian law: exponential stages in a row, with a chance of stopping after each.

After stage j (rate μⱼ) the job goes on to stage j+1 with probability qⱼ and is done otherwise. Any law with a
rational transform is nearly of this form, so it is the usual target when moments are matched
(Cox, *A use of complex probabilities in the theory of stochastic processes*, 1955).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.catalog.spec import Positive, Probability
from malleable.contracts import Distribution
from malleable.distributions.base import phases
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


@dataclass(frozen=True)
class Coxian(Distribution):
    """Stages in a row: the rate of each, and the probabilities of going on after all but the last."""

    rates: tuple[Positive, ...]
    probabilities: tuple[Probability, ...]

    def check(self) -> None:
        if not self.rates:
            raise ParameterError("must not be empty", "give the rate of at least one stage", ("rates",))
        if len(self.probabilities) != len(self.rates) - 1:
            raise ParameterError(
                f"must have one entry fewer than rates, got {len(self.probabilities)} for {len(self.rates)}",
                "give the probability of going on after each stage but the last",
                ("probabilities",),
            )

    def moment(self, order: int) -> float:
        return phases.moment(*self.phase_type(), order)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        total = np.zeros(size)
        present = np.arange(size)
        for rate, onward in zip(self.rates, (*self.probabilities, 0.0), strict=True):
            total[present] += rng.exponential(1.0 / rate, len(present))
            present = present[rng.random(len(present)) < onward]
        return total

    def survival(self, x: FloatArray) -> FloatArray:
        return phases.survival(*self.phase_type(), np.asarray(x, dtype=float))

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        return phases.mean_remaining(*self.phase_type(), np.asarray(done, dtype=float))

    def scaled(self, factor: float) -> Coxian:
        return Coxian(tuple(rate / factor for rate in self.rates), self.probabilities)

    def phase_type(self) -> tuple[FloatArray, FloatArray]:
        return phases.serial(np.array(self.rates), np.array(self.probabilities))
