"""Poisson arrivals: independent exponential inter-arrival times."""

from __future__ import annotations

from dataclasses import dataclass

from malleable.catalog.spec import Positive
from malleable.contracts import Arrivals, Distribution
from malleable.distributions.exponential import Exponential


@dataclass(frozen=True)
class Poisson(Arrivals):
    """Poisson process of a given rate."""

    rate: Positive

    @property
    def interval(self) -> Distribution:
        return Exponential(self.rate)

    @property
    def poisson(self) -> bool:
        return type(self) is Poisson  # a subclass may have other intervals

    def faster(self, factor: float) -> Poisson:
        return Poisson(self.rate * factor)
