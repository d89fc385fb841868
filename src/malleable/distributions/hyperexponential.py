"""The hyperexponential law: with probability pⱼ exponential of rate μⱼ; squared coefficient of variation ≥ 1.

E[X^r] = r! Σⱼ pⱼ/μⱼ^r. A mean m and a squared coefficient of variation c ≥ 1 stand for two branches with
balanced means: p = (1 ± √((c − 1)/(c + 1)))/2 and rates 2p/m. At the age a branch j has the weight
pⱼ e^(−μⱼa), and 1/μⱼ remains on it as ever. The usual stand-in for job sizes more variable than exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, fsum, sqrt
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Lt

from malleable.catalog.spec import INFINITY, Positive, Probability, positive, validate
from malleable.contracts import Distribution
from malleable.distributions.base import phases
from malleable.distributions.base.float_limits import over_power
from malleable.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from malleable.contracts import FloatArray


def _probabilities(given: Mapping[str, Any]) -> tuple[float, float]:
    scv = float(validate(Annotated[float, Ge(1), Lt(INFINITY)], given.get("scv")))
    apart = sqrt((scv - 1.0) / (scv + 1.0))
    return (1.0 + apart) / 2.0, 1.0 / ((1.0 + apart) * (scv + 1.0))  # the second is (1 − apart)/2


def _rates(given: Mapping[str, Any]) -> tuple[float, ...]:
    """Rates that make all branches contribute the same to the mean."""
    mean = positive("mean")(given)
    if "probabilities" not in given:
        raise ParameterError("does not say how sizes vary", "add the scv: mean = 2, scv = 4")
    shares = validate(tuple[Probability, ...], given["probabilities"])
    return tuple(len(shares) * p / mean for p in shares)


@dataclass(frozen=True)
class Hyperexponential(Distribution):
    """A mixture of exponentials: probability and rate of each, or the mean and scv of two."""

    probabilities: tuple[Probability, ...]
    rates: tuple[Positive, ...]

    alternatives: ClassVar = {"scv": ("probabilities", _probabilities), "mean": ("rates", _rates)}

    def check(self) -> None:
        phases.check_total(self.probabilities, "probabilities")
        if len(self.rates) != len(self.probabilities):
            raise ParameterError(
                f"must be as many as probabilities, got {len(self.rates)} for {len(self.probabilities)}",
                "give one rate for each probability",
                ("rates",),
            )

    def moment(self, order: int) -> float:
        terms = (
            over_power(p, rate, order)
            for p, rate in zip(self.probabilities, self.rates, strict=True)
            if p > 0.0
        )
        return factorial(order) * fsum(terms)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        phase = phases.draw(rng, np.array(self.probabilities), size)
        draws = rng.standard_exponential(size)
        draws *= np.take(1.0 / np.array(self.rates), phase)
        return draws

    def survival(self, x: FloatArray) -> FloatArray:
        p, rates = np.array(self.probabilities), np.array(self.rates)
        with np.errstate(under="ignore"):
            alive = np.exp(-np.multiply.outer(np.maximum(x, 0.0), rates))
        return np.asarray(alive @ (p / p.sum()), dtype=float)

    def mean_remaining(self, done: FloatArray) -> FloatArray:
        p, rates = np.array(self.probabilities), np.array(self.rates)
        p, rates = p[p > 0.0], rates[p > 0.0]
        with np.errstate(under="ignore", over="ignore"):
            # Over the weight of the slowest branch, so that some weight never vanishes.
            weights = p * np.exp(-np.multiply.outer(np.asarray(done, dtype=float), rates - rates.min()))
            return np.asarray(weights @ (1.0 / rates) / weights.sum(axis=-1), dtype=float)

    def scaled(self, factor: float) -> Hyperexponential:
        return Hyperexponential(self.probabilities, tuple(rate / factor for rate in self.rates))

    def phase_type(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self.probabilities), np.diag(-np.array(self.rates))
