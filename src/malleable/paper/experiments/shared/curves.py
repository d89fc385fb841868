"""Costs of a policy over the number of cores: simulated with intervals, exact where that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table
from malleable.paper.experiments.shared.columns import interval_columns, stacked
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.evidence import Case, power
from malleable.plots.figures import Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.paper.experiments.shared.policies import Label


@dataclass(frozen=True)
class Curve:
    """One policy over n; what does not exist is NaN, with the whole line for an interval."""

    name: str
    cores: tuple[int, ...]
    simulated: tuple[Estimate, ...]
    results: tuple[Mapping[str, Any] | None, ...]
    """The simulations, as `malleable simulate --json` has them."""
    exact: tuple[float, ...]
    colour: int | None
    notes: tuple[str, ...] = ()
    """Why a point is missing, or what is special about it."""
    more: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Columns to add to the table."""

    @classmethod
    def simulated_by(
        cls,
        policy: str,
        label: Label,
        found: Mapping[int, Any],
        exact: Sequence[float] | None = None,
        notes: Sequence[str] = (),
        **more: Sequence[Any],
    ) -> Curve:
        """A policy in cells that have compared it, by number of cores."""
        runs = [Compared(value) for value in found.values()]
        return cls(
            label.name,
            tuple(found),
            tuple(run.cost(policy) for run in runs),
            tuple(run.result(policy) for run in runs),
            (nan,) * len(runs) if exact is None else tuple(exact),
            label.colour,
            tuple(notes),
            {name: tuple(column) for name, column in more.items()},
        )

    @property
    def x(self) -> tuple[float, ...]:
        """The numbers of cores as coordinates."""
        return tuple(map(float, self.cores))

    def gaps(self, lowest: float) -> tuple[Estimate, ...]:
        """By which share of it the cost exceeds the bound; from the exact cost where that is known."""
        known = (
            s if isnan(x) else Estimate(x, x, x) for x, s in zip(self.exact, self.simulated, strict=True)
        )
        return tuple(one.shifted(-lowest).over(lowest) for one in known)

    def rate(self, lowest: float, start: float) -> Estimate:
        """The exponent of the gap as a power of n, from n = start on."""
        kept = [(n, g) for n, g in zip(self.cores, self.gaps(lowest), strict=True) if n >= start]
        return power([n for n, _ in kept], [gap for _, gap in kept])[0]

    def series(self, style: str, name: str = "") -> Series:
        """The simulated costs with their intervals."""
        return Series.of(name or self.name, self.x, self.simulated, style, self.colour, self.notes)

    def gap_series(self, lowest: float, style: str) -> Series:
        """The gaps, for a logarithmic axis."""
        return Series.of(self.name, self.x, positive(self.gaps(lowest)), style, self.colour, self.notes)

    def cases(self) -> list[Case]:
        """Simulated costs beside the exact ones."""
        rows = zip(self.cores, self.simulated, self.results, self.exact, strict=True)
        return [
            Case(f"{self.name} on {n} cores", found, result, exact)
            for n, found, result, exact in rows
            if result is not None and not isnan(exact)
        ]


def positive(found: Iterable[Estimate]) -> list[Estimate]:
    """What a logarithmic axis can show: it has no place for what may be zero."""
    return [one if one.low > 0.0 else Estimate() for one in found]


def costs_table(name: str, title: str, curves: Iterable[Curve], lowest: float) -> Table:
    """One row for each policy and n."""
    return Table(name, title, stacked([_columns(curve, lowest) for curve in curves]))


def _columns(curve: Curve, lowest: float) -> dict[str, tuple[Any, ...]]:
    return {
        "policy": (curve.name,) * len(curve.cores),
        "cores": curve.cores,
        "exact cost": curve.exact,
        **interval_columns("simulated cost", curve.simulated),
        **interval_columns("gap", curve.gaps(lowest), "gap low", "gap high"),
        "jobs simulated": tuple(None if r is None else r["jobs"] for r in curve.results),
        **curve.more,
    }
