"""Renewal arrivals: independent inter-arrival times of any law."""

from __future__ import annotations

from dataclasses import dataclass

from malleable.contracts import Arrivals, Distribution


@dataclass(frozen=True)
class Renewal(Arrivals):
    """Arrivals with independent inter-arrival times of any law."""

    interval: Distribution

    @property
    def rate(self) -> float:
        """Arrivals per unit of time, 1/E[interval]."""
        return 1.0 / self.interval.mean

    def faster(self, factor: float) -> Renewal:
        return Renewal(self.interval.scaled(1.0 / factor))
