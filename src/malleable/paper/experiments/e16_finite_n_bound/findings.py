"""What the cells of e16_finite_n_bound show: a figure, a table and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e16_finite_n_bound.cells import (
    BY_COUNTS,
    CORES_OF_LOADS,
    FIRST_SEED,
    FITTED,
    LOAD,
    POOLS,
    cores_of,
    loads_of,
    seeds_of,
    settings_of,
)
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.known_jobs import STREAM, above
from malleable.paper.experiments.shared.policies import POLICIES
from malleable.paper.experiments.shared.workloads import key_of
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.paper.contracts import Values

NAMES = {
    **{policy: POLICIES[policy] for policy in BY_COUNTS},
    FITTED: POLICIES["hesrpt"]._replace(name="wham-fitted"),
    POOLS: POLICIES["fw-cam"]._replace(name="FW-CAM"),
}
"""Policies, in the order of the table; FW-CAM with slots that others may use, so that it has a plan."""
AT_MOST = {16: 0.04, 64: 0.025, 256: 0.007}
"""How far WHAM may be above the bound on the paper's workload at load .25, by the number of cores."""
LOOSER = 0.05
"""What a quick look may add to that: its streams are short."""
MOSTLY = 0.5
TELLING = 0.02
"""Where WHAM is nearer to V* than this, there is next to nothing to explain."""
CHOICES = {
    "bound": (
        "the price path of four streams, each from an empty system until its last job has left "
        f"({', '.join(f'{jobs} jobs: {name}' for name, jobs in STREAM.items())}); 95 % intervals by batches"
    ),
    "policies": "simulated in the long run; FW-CAM is fw-cam-repaired with its default β",
    "paper's workload": f"ρ = {LOAD:g} over n, and n = {CORES_OF_LOADS} over ρ",
    "random workloads": f"seeds from {FIRST_SEED}: 2 to 6 classes, n = 3 to 64, ρ = 0.3 to 0.95",
    "above V*": "V* with no job above n cores",
    "unavoidable": "(bound for given jobs − V*)/(cost − V*): a lower bound on that share",
}


@dataclass(frozen=True)
class Point:
    """A setting, its bound for given jobs, and what policies cost."""

    name: str
    where: Mapping[str, Any]
    least: Estimate
    values: tuple[Any, ...]

    @cached_property
    def results(self) -> dict[str, Any]:
        """Simulations by policy, those that kept up."""
        found = [Compared(value) for value in self.values]
        return {
            policy: result
            for one in found
            for policy, result in one.results.items()
            if result["stable"] and result["gap"] is not None
        }

    def cost(self, policy: str) -> Estimate:
        """What a policy costs."""
        return read_interval(self.results[policy]["cost"]) if policy in self.results else Estimate()

    def above_average(self, policy: str) -> float:
        """How far it lies above V*, the bound that knows averages."""
        return float(self.results[policy]["gap"]) if policy in self.results else nan

    def above_known(self, policy: str) -> Estimate:
        """How far it lies above the bound for given jobs."""
        return above(self.cost(policy), self.least)

    def unavoidable(self, policy: str) -> float:
        """The share of a policy's distance from V* that no policy can avoid."""
        lowest = self.cost(policy).mean / (1.0 + self.above_average(policy))
        return (self.least.mean - lowest) / (self.cost(policy).mean - lowest)


def points_of(effort: Effort, values: Values) -> dict[str, Point]:
    """All settings with a bound, by key."""
    found = {}
    for key, where in settings_of(effort).items():
        least = values.get(f"known-{key}")
        if not failed(least):
            workload = "the paper's" if key.startswith("paper") else key.replace("-", " ")
            name = f"{workload}, n = {where['cores']}, ρ = {where['load']:.3g}"
            parts = tuple(values.get(f"{kind}-{key}") for kind in ("counts", "fitted", "pools"))
            found[key] = Point(name, where, read_interval(least), parts)
    return found


def findings(effort: Effort, values: Values) -> Findings:
    """Distances from both bounds, and what they say."""
    points = points_of(effort, values)
    over_n = [points[key] for n in cores_of(effort) if (key := key_of("paper", "paper", n, LOAD)) in points]
    loads = sorted({*loads_of(effort), *([LOAD] if not effort.quick else [])})
    over_load = [
        points[key] for load in loads if (key := key_of("paper", "paper", CORES_OF_LOADS, load)) in points
    ]
    random = [points[key] for seed in seeds_of(effort) if (key := f"random-{seed}") in points]
    return Findings(
        title="How close to the best possible on any number of cores",
        source="beyond the paper",
        statement=(
            "V* knows averages: on few cores no policy comes near it, because jobs come in bursts. A bound "
            "for given jobs knows every arrival and every size. No schedule of these jobs can cost less, not "
            "even one that was planned with all of them known beforehand. How much of the distance between "
            "policies and V* is then unavoidable, and how much is left to gain?"
        ),
        figures=(figure(over_n, over_load, random),),
        tables=(table(points.values()),),
        verdicts=(
            none_below(points.values()),
            near(over_n, effort),
            mostly_unavoidable(over_n),
            wham_first(over_n),
        ),
        remarks=(
            (
                "The bound holds for a scheduler that knows the future. What a policy that does not know it "
                "can reach lies between: the rest of the distance is not all to be gained."
            ),
            (
                "A stream starts with an empty system and ends when it is empty again, so the bound is a "
                "little low, the more so the more cores there are. It is a bound for every length."
            ),
            (
                "On random workloads with unequal weights and nearly linear speedups most of the distance is "
                "left even so: there is more to gain there, or the bound is loose."
            ),
        ),
    )


def figure(over_n: list[Point], over_load: list[Point], random: list[Point]) -> Figure:
    """Distances from the bounds over n and the load, and on random workloads."""
    ordered = sorted((p for p in random if "wham" in p.results), key=lambda p: p.above_average("wham"))
    places = tuple(map(float, range(1, len(ordered) + 1)))
    cores = tuple(float(p.where["cores"]) for p in over_n)
    loads = tuple(float(p.where["load"]) for p in over_load)
    y = Axis("cost above the bound, %", "log")
    scattered = (
        _to_average(ordered, places, "points"),
        *(_to_known(ordered, places, policy, "points") for policy in ("wham", FITTED)),
    )
    return Figure(
        "finite-n",
        "Distance from the best possible",
        "By how many per cent policies cost more than the bounds. The dashed line is WHAM's distance from "
        "V*, which knows averages; the others are distances from the least that a scheduler could reach that "
        "knew all jobs beforehand. What lies between the dashed line and WHAM's is unavoidable: it is the "
        f"price of few cores, not of the policy. First: the paper's workload at load {LOAD:g} over n. "
        f"Second: the same on {CORES_OF_LOADS} cores over the load. Third: random workloads, in the order of "
        "WHAM's distance from V*.",
        (
            Panel(Axis("cores n", "log"), y, _series(over_n, cores)),
            Panel(Axis("load ρ"), y, _series(over_load, loads)),
            Panel(Axis("random workload"), y, scattered),
        ),
    )


def _series(points: list[Point], x: tuple[float, ...]) -> tuple[Series, ...]:
    return (
        _to_average(points, x, "dashed"),
        *(_to_known(points, x, policy, "both") for policy in NAMES),
    )


def _to_average(points: list[Point], x: tuple[float, ...], style: str) -> Series:
    y = tuple(100.0 * p.above_average("wham") for p in points)
    return Series("WHAM above V*", x, y, style=style, colour=6)


def _to_known(points: list[Point], x: tuple[float, ...], policy: str, style: str) -> Series:
    name, colour = NAMES[policy]
    shown = [e.scaled(100.0) if e.low > 0.0 else Estimate() for e in (p.above_known(policy) for p in points)]
    return Series.of(f"{name}, jobs known", x, shown, style, colour)


def table(points: Iterable[Point]) -> Table:
    """One row for each setting and policy."""
    rows = [(p, policy) for p in points for policy in NAMES if policy in p.results]
    columns: dict[str, tuple[Any, ...]] = {
        "setting": tuple(p.name for p, _ in rows),
        "policy": tuple(NAMES[policy].name for _, policy in rows),
        "cost": tuple(p.cost(policy).mean for p, policy in rows),
        "above V*": tuple(p.above_average(policy) for p, policy in rows),
        **interval_columns("above the bound for given jobs", [p.above_known(policy) for p, policy in rows]),
        "unavoidable share": tuple(p.unavoidable(policy) for p, policy in rows),
    }
    return Table("finite-n", "Distances from both bounds", columns)


def none_below(points: Iterable[Point]) -> Verdict:
    """A bound that some policy beats is none."""
    rows = [(p.above_known(policy), p.name, policy) for p in points for policy in p.results]
    known = [row for row in rows if isfinite(row[0].mean)]
    least = min(known, key=lambda row: row[0].mean)
    below = [row for row in known if row[0].high < 0.0]
    return Verdict(
        "No policy costs less than the bound for given jobs",
        not below,
        f"{len(known)} costs; the nearest is {least[2]} ({least[1]}): {least[0].mean:.2%} above it",
    )


def near(over_n: list[Point], effort: Effort) -> Verdict:
    """How close WHAM is on the paper's workload."""
    asked = [p for p in over_n if p.where["cores"] in AT_MOST]
    slack = LOOSER if effort.quick else 0.0
    found = [(p.above_known("wham").mean, AT_MOST[p.where["cores"]] + slack) for p in asked]
    told = ", ".join(
        f"{gap.mean:.2%} ± {gap.half_width:.2%} (n = {p.where['cores']})"
        for p in over_n
        if isfinite((gap := p.above_known("wham")).mean)
    )
    return Verdict(
        "On the paper's workload WHAM is within a few per cent of a scheduler that knows all jobs",
        all(gap <= most for gap, most in found) if found else None,
        told,
    )


def mostly_unavoidable(over_n: list[Point]) -> Verdict:
    """Whether WHAM's distance from V* is the price of few cores."""
    told = [p for p in over_n if p.above_average("wham") > TELLING]
    shares = {p.where["cores"]: p.unavoidable("wham") for p in told}
    text = ", ".join(f"{share:.0%} (n = {n})" for n, share in shares.items())
    return Verdict(
        "On the paper's workload most of WHAM's distance from V* is unavoidable, at any n",
        min(shares.values()) > MOSTLY if shares else None,
        text or "no distance to speak of",
    )


def wham_first(over_n: list[Point]) -> Verdict:
    """Which of the paper's policies is nearest to the bound."""
    behind = [
        (rival, p.where["cores"])
        for p in over_n
        for rival in ("equi", "greedy")
        if p.cost(rival).high < p.cost("wham").low
    ]
    apart = [
        (p.above_known("equi").mean - p.above_known("wham").mean, p.where["cores"])
        for p in over_n
        if "equi" in p.results
    ]
    text = ", ".join(f"{100.0 * gap:.2f} points (n = {n})" for gap, n in apart)
    return Verdict(
        "WHAM is nearer to the bound than EQUI and GREEDY at every n", not behind, f"EQUI − WHAM: {text}"
    )
