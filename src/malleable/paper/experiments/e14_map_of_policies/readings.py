"""What figures and verdicts of e14_map_of_policies both read from the values of its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import failed
from malleable.paper.experiments.e14_map_of_policies.cells import CLASSES, CORES, IMPROVED, POLICIES
from malleable.paper.experiments.shared.evidence import SURE
from malleable.statistics.intervals import Estimate, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values

RIVALS = ("equi", "greedy")
LOAD_BINS = ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9))
SPREAD_BINS = ((1.0, 2.0), (2.0, 5.0), (5.0, 12.0), (12.0, 30.0))
GROUPS = 32
"""Independent groups that intervals are made from on a GPU, and at least about as many batches elsewhere."""
WIDER = t_quantile(GROUPS - 1, SURE) / t_quantile(GROUPS - 1, 0.95)
"""By how much an interval of 99.9 % is wider than one of 95 %."""


@dataclass(frozen=True)
class Row:
    """One workload: what it is like, and what policies cost there over WHAM."""

    classes: int
    cores: int
    number: int
    load: float
    scv: float
    spread: float
    speedups: str
    cost: float
    """Of WHAM."""
    shares: Mapping[str, Estimate]
    """Cost of another policy over that of WHAM, less 1, at 99.9 %."""
    errors: Mapping[str, tuple[float, bool]]
    """Refined mean field over the simulated cost, less 1, and whether it says that it applies, by policy."""
    half_width: float
    """Of the cost of WHAM, relative, at 95 %."""

    @property
    def name(self) -> str:
        """By which it can be made again."""
        return f"{self.classes}-{self.cores}-{self.number}"

    @property
    def lead(self) -> float:
        """Cost of the better rival over that of WHAM, less 1: negative where WHAM is not the best."""
        return min(self.shares[rival].mean for rival in RIVALS)

    @property
    def best(self) -> str:
        """The policy of least cost."""
        rival = min(RIVALS, key=lambda name: self.shares[name].mean)
        return "wham" if self.lead >= 0.0 else rival

    @property
    def wins(self) -> bool | None:
        """Whether WHAM is the best of the three; None where the intervals do not decide."""
        if any(self.shares[rival].high < 0.0 for rival in RIVALS):
            return False
        return True if all(self.shares[rival].low > 0.0 for rival in RIVALS) else None


def rows_of(values: Values) -> list[Row]:
    """All workloads that were simulated."""
    made = []
    for classes in CLASSES:
        for cores in CORES:
            found = values.get(f"simulated-{classes}-{cores}")
            if failed(found):
                continue
            told = values.get(f"predicted-{classes}-{cores}")
            for k, one in enumerate(found or ()):
                guess = {} if failed(told) or told is None or k >= len(told) else told[k]
                made.append(_row(classes, cores, one, guess))
    return made


def _row(classes: int, cores: int, one: Mapping[str, Any], guess: Mapping[str, Any]) -> Row:
    cost, half = one["costs"]["wham"]
    traits = {key: one[key] for key in ("number", "load", "scv", "spread", "speedups")}
    errors = {
        policy: (guess[policy]["refined"] / one["costs"][policy][0] - 1.0, bool(guess[policy]["applies"]))
        for policy in POLICIES
        if guess.get(policy, {}).get("refined") is not None
    }
    return Row(classes, cores, **traits, cost=cost, shares=shares(one), errors=errors, half_width=half / cost)


def shares(one: Mapping[str, Any]) -> dict[str, Estimate]:
    """Differences from WHAM as shares of its cost, with intervals of 99.9 %."""
    cost = one["costs"]["wham"][0]
    made = {}
    for policy, (mean, half) in one["differences"].items():
        wide = WIDER * half
        ends = (mean - wide, mean, mean + wide)
        low, middle, high = (v / cost if isfinite(v) else v for v in ends)
        made[policy] = Estimate(middle, low, high)
    return made


def improved_rows(values: Values) -> list[tuple[str, float, float, Estimate]]:
    """Name, cores, load, and cost of the improved WHAM over that of WHAM, less 1."""
    made = []
    for classes in CLASSES:
        for cores in CORES:
            found = values.get(f"improved-{classes}-{cores}")
            if not failed(found):
                made += [
                    (f"{classes}-{cores}-{r['number']}", float(cores), r["load"], shares(r)[IMPROVED])
                    for r in found or ()
                ]
    return made


def between(rows: Sequence[Row], what: str, ends: tuple[float, float]) -> list[Row]:
    """Those rows with a trait in a range; the last range has its end."""
    low, high = ends
    return [row for row in rows if low <= getattr(row, what) < high or getattr(row, what) == high]


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of them lies; NaN if there is none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
