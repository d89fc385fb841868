"""What the cells of e14_map_of_policies show: figures, tables and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e14_map_of_policies.cells import (
    CLASSES,
    CORES,
    IMPROVED,
    IMPROVED_CORES,
    MANY,
    SIZES,
)
from malleable.paper.experiments.e14_map_of_policies.workloads import LOADS, SCVS, SPREAD
from malleable.paper.experiments.shared.evidence import SURE
from malleable.paper.experiments.shared.policies import POLICIES, RIVALS
from malleable.paper.simulation_cells import PAPERS
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from malleable.statistics.intervals import Estimate, t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.paper.contracts import Values

LOAD_BINS = ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9))
SPREAD_BINS = ((1.0, 2.0), (2.0, 5.0), (5.0, 12.0), (12.0, 30.0))
GROUPS = 32
"""Independent groups that intervals are made from on a GPU, and at least about as many batches elsewhere."""
WIDER = t_quantile(GROUPS - 1, SURE) / t_quantile(GROUPS - 1, 0.95)
"""By how much an interval of 99.9 % is wider than one of 95 %."""
WORST = 12
"""Worst cases that are named."""
MOSTLY = 0.9
"""Share of the workloads that makes a winner."""
LITTLE = 0.05
"""Share of its cost that WHAM may lose to a rival."""
HEAVY = 0.5
"""Loads from which on WHAM should hardly ever be beaten, and how rarely that is."""
HARDLY = 0.01
NEAR, NEARLY_ALL = 0.01, 0.95
"""By how much the refined mean field may miss, and on how many of the workloads it may not."""
_REFINED = (
    f"Where it applies, the refined mean field gives WHAM's cost to {NEAR:.0%} on {NEARLY_ALL:.0%} of "
    "workloads"
)
CHOICES = {
    "workloads": (
        f"as many for each number of cores and classes: 2 to 4 classes (2 or 3 beyond {MANY} cores), arrival "
        "rates in ratios of up to 10, mean sizes in ratios of up to 20, power laws with p from 0.1 to 0.95, "
        "Amdahl's law with q from 0.02 to 0.6, or the universal scalability law"
    ),
    "loads": f"uniform between {LOADS[0]:g} and {LOADS[1]:g}",
    "sizes": f"one SCV for all classes of a workload: {', '.join(f'{v:g}' for v in SCVS)}",
    "holding costs": f"the largest is 1 to {SPREAD:g} times the least, uniform in the logarithm",
    "full effort": (
        f"{19 * SIZES['full on a GPU']['count']} workloads with a GPU, {19 * SIZES['full']['count']} without"  # type: ignore[operator]
    ),
    "improved WHAM": (
        f"up to {IMPROVED_CORES} cores, on the first workloads with exponential sizes of each kind, at full "
        "effort only: a plan takes a second, and for other sizes more"
    ),
    "intervals": "99.9 % for who wins on a workload, from 32 independent groups of replications or batches",
}
REMARKS = (
    (
        "A workload is named by classes, cores and number; random_workload(classes, cores, number) of this "
        "experiment's `workloads` makes it again."
    ),
    (
        "GREEDY serves in order of arrival when jobs outnumber cores, so variable sizes at high load on few "
        "cores cost it many times as much as WHAM. That is a matter of the queue, not of sharing out cores."
    ),
    (
        "The improved WHAM is made for jobs of unknown size. With known sizes WHAM has the better order when "
        "jobs outnumber cores, so that it may win at high load."
    ),
)


def findings(effort: Effort, values: Values) -> Findings:
    """The maps, the worst cases, and what they say."""
    rows, improved = rows_of(values), improved_rows(values)
    devices = sorted({one["device"] for v in values.values() for one in _simulated(v) if one["device"]})
    return Findings(
        title="A map of policies",
        source="beyond the paper",
        statement=(
            "The paper compares WHAM with EQUI and GREEDY on one workload, and proves it optimal as the "
            f"number of cores grows. Here the three meet on {len(rows)} random workloads on few and many "
            "cores, all on the same jobs: how often does each win, by how much, and where does WHAM lose "
            "most? The refined mean field, which needs no simulation, is held against the same costs."
        ),
        figures=(
            machine_map(rows),
            workload_map(rows),
            leads(rows),
            *((improved_figure(improved),) if improved else ()),
            refined_figure(rows),
        ),
        tables=(winners_table(rows), worst_table(rows), refined_table(rows), workloads_table(rows)),
        verdicts=(
            mostly_best(rows),
            loses_little(rows),
            hardly_beaten(rows),
            *((improved_helps(improved),) if improved else ()),
            refined_is_near(rows),
        ),
        remarks=(
            *REMARKS,
            f"Simulated on {', '.join(devices)}." if devices else "Simulated on processors.",
            f"This is effort {effort.name}: "
            + ("few workloads." if effort.name != "full" else "all of them."),
        ),
    )


def _simulated(value: object) -> list[dict[str, str]]:
    return [one for one in value if "device" in one] if isinstance(value, list) else []


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
        for policy in PAPERS
        if guess.get(policy, {}).get("refined") is not None
    }
    return Row(classes, cores, **traits, cost=cost, shares=shares(one), errors=errors, half_width=half / cost)


def shares(one: Mapping[str, Any]) -> dict[str, Estimate]:
    """Differences from WHAM as shares of its cost, with intervals of 99.9 %."""
    cost = one["costs"]["wham"][0]
    made = {}
    for policy, (mean, half) in one["differences"].items():
        wide = WIDER * half
        made[policy] = Estimate(mean, mean - wide, mean + wide).over(cost)
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


def machine_map(rows: Sequence[Row]) -> Figure:
    """Where WHAM wins, by how much it leads, and what it loses, over cores and loads."""
    cores = sorted({row.cores for row in rows})
    x = Axis("cores n", categories=tuple(map(str, cores)))
    y = Axis("system load ρ", categories=tuple(f"{a:g}–{b:g}" for a, b in LOAD_BINS))
    parts = [[[r for r in between(rows, "load", b) if r.cores == n] for n in cores] for b in LOAD_BINS]
    return Figure(
        "map-machines",
        "Who wins, over cores and loads",
        "Random workloads by cores and load. First: on how many of them WHAM costs the least of WHAM, EQUI "
        "and GREEDY. Second: the median of what the better rival costs more than WHAM. Third: the most that "
        "WHAM costs more than the better rival.",
        _panels(x, y, parts),
    )


def workload_map(rows: Sequence[Row]) -> Figure:
    """The same over the spread of holding costs and the variability of sizes."""
    scvs = sorted({row.scv for row in rows})
    x = Axis("SCV of sizes", categories=tuple(f"{v:g}" for v in scvs))
    y = Axis("largest over least holding cost", categories=tuple(f"{a:g}–{b:g}" for a, b in SPREAD_BINS))
    parts = [[[r for r in between(rows, "spread", b) if r.scv == v] for v in scvs] for b in SPREAD_BINS]
    return Figure(
        "map-workloads",
        "Who wins, over holding costs and sizes",
        "The same workloads by the ratio of their holding costs and the squared coefficient of variation of "
        "their sizes: wins of WHAM, its median lead, and the most that it loses.",
        _panels(x, y, parts),
    )


def _panels(x: Axis, y: Axis, parts: list[list[list[Row]]]) -> tuple[Panel, ...]:
    shown: tuple[tuple[str, str, Callable[[list[Row]], float]], ...] = (
        ("WHAM is the best", "% of workloads", lambda mine: 100.0 * _share(mine, "wham")),
        ("median lead of WHAM", "%", lambda mine: 100.0 * quantile([row.lead for row in mine], 0.5)),
        ("most that WHAM loses", "%", lambda mine: round(100.0 * _largest_loss(mine), 2)),
    )
    made = []
    for title, unit, value in shown:
        z = tuple(tuple(value(mine) if mine else nan for mine in line) for line in parts)
        columns, lines = (tuple(map(float, range(n))) for n in (len(parts[0]), len(parts)))
        made.append(Panel(x, y, grid=Grid(columns, lines, z, unit), title=title))
    return tuple(made)


def _share(rows: Sequence[Row], policy: str) -> float:
    return sum(row.best == policy for row in rows) / len(rows) if rows else nan


def _largest_loss(rows: Sequence[Row]) -> float:
    """What WHAM costs more than the better rival at most, as a share of its cost."""
    return max(0.0, -min(row.lead for row in rows))


def leads(rows: Sequence[Row]) -> Figure:
    """How the rivals' costs over WHAM's are distributed."""
    series = []
    for rival in RIVALS:
        name, colour = POLICIES[rival]
        ordered = sorted(100.0 * row.shares[rival].mean for row in rows)
        steps = sorted({round(k * (len(ordered) - 1) / 400) for k in range(401)})
        at = tuple(ordered[k] for k in steps)
        part = tuple(100.0 * (k + 1) / len(ordered) for k in steps)
        series.append(Series(name, at, part, colour=colour))
    panel = Panel(
        Axis("cost over that of WHAM, %", low=-6.0, high=100.0), Axis("% of workloads"), tuple(series)
    )
    return Figure(
        "map-leads",
        "By how much",
        "The share of workloads on which a rival costs at most so much more than WHAM; to the left of 0 it "
        "costs less. The curves go on beyond 100 %.",
        (panel,),
    )


def improved_figure(found: Sequence[tuple[str, float, float, Estimate]]) -> Figure:
    """The improved WHAM over WHAM, by load, one series per number of cores."""
    series = []
    for i, n in enumerate(sorted({cores for _, cores, *_ in found})):
        mine = sorted((load, share, name) for name, cores, load, share in found if cores == n)
        x, y = [load for load, *_ in mine], [share for _, share, _ in mine]
        names = tuple(name for *_, name in mine)
        series.append(Series.of(f"{n:g} cores", x, y, "points", i, names))
    panel = Panel(Axis("system load ρ"), Axis("cost / cost of WHAM − 1"), tuple(series))
    return Figure(
        "map-improved",
        "The improved WHAM on the same jobs",
        "Workloads with exponential sizes, with intervals of 99.9 %. It weighs classes by a value function, "
        "and looks at no sizes; WHAM looks at them when jobs outnumber cores.",
        (panel,),
    )


def refined_figure(rows: Sequence[Row]) -> Figure:
    """Errors of the refined mean field over cores, where it applies."""
    cores = sorted({row.cores for row in rows})
    x = tuple(map(float, cores))
    errors = {
        (policy, n): [
            100.0 * abs(row.errors[policy][0]) for row in rows if row.cores == n and _fits(row, policy)
        ]
        for policy in PAPERS
        for n in cores
    }
    panels = []
    for title, share in (("median", 0.5), ("95 % of them are nearer", 0.95)):
        series = []
        for policy in PAPERS:
            name, colour = POLICIES[policy]
            y = tuple(quantile(errors[policy, n], share) for n in cores)
            series.append(Series(name, x, y, style="both", colour=colour))
        panels.append(Panel(Axis("cores n", "log"), Axis("error, %", "log"), tuple(series), title=title))
    return Figure(
        "map-refined",
        "The refined mean field on the same workloads",
        "The distance of its cost from the simulated one, over the latter, on the workloads to which it says "
        "that it applies. Simulated costs have errors of some tenths of a percent themselves.",
        tuple(panels),
    )


def _fits(row: Row, policy: str) -> bool:
    return policy in row.errors and row.errors[policy][1]


def winners_table(rows: Sequence[Row]) -> Table:
    """How often each policy wins, and by how much the others lose."""
    groups: list[tuple[str, list[Row]]] = [("all", list(rows))]
    groups += [
        (f"{n} cores", [row for row in rows if row.cores == n]) for n in sorted({r.cores for r in rows})
    ]
    groups += [(f"load {a:g} to {b:g}", between(rows, "load", (a, b))) for a, b in LOAD_BINS]
    groups += [
        (f"{m} classes", [r for r in rows if r.classes == m]) for m in sorted({r.classes for r in rows})
    ]
    shown = [(name, mine) for name, mine in groups if mine]
    columns: dict[str, tuple[Any, ...]] = {
        "workloads": tuple(name for name, _ in shown),
        "number": tuple(len(mine) for _, mine in shown),
        **{f"{POLICIES[p].name} best": tuple(_share(mine, p) for _, mine in shown) for p in PAPERS},
    }
    for rival in RIVALS:
        name = POLICIES[rival].name
        for label, share in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)):
            columns[f"{name} over WHAM, {label}"] = tuple(
                quantile([row.shares[rival].mean for row in mine], share) for _, mine in shown
            )
    columns["WHAM's largest loss"] = tuple(_largest_loss(mine) for _, mine in shown)
    return Table("map", "Who wins, and by how much", columns)


def worst_table(rows: Sequence[Row]) -> Table:
    """The workloads on which WHAM loses most."""
    worst = sorted(rows, key=lambda row: row.lead)[:WORST]
    columns: dict[str, tuple[Any, ...]] = {
        "workload": tuple(row.name for row in worst),
        "load": tuple(row.load for row in worst),
        "SCV": tuple(row.scv for row in worst),
        "holding costs": tuple(row.spread for row in worst),
        "speedups": tuple(row.speedups for row in worst),
        **{
            f"{POLICIES[rival].name} over WHAM": tuple(row.shares[rival].mean for row in worst)
            for rival in RIVALS
        },
        "±": tuple(row.shares[min(RIVALS, key=lambda p: row.shares[p].mean)].half_width for row in worst),
    }
    return Table("map-worst", "Where WHAM loses most (classes-cores-number)", columns)


def refined_table(rows: Sequence[Row]) -> Table:
    """Errors of the refined mean field by policy and cores."""
    cores = sorted({row.cores for row in rows})
    pairs = [
        (p, n, [row for row in rows if row.cores == n and p in row.errors]) for p in PAPERS for n in cores
    ]
    fits = [[abs(row.errors[p][0]) for row in mine if row.errors[p][1]] for p, _, mine in pairs]
    rest = [[abs(row.errors[p][0]) for row in mine if not row.errors[p][1]] for p, _, mine in pairs]
    columns: dict[str, tuple[Any, ...]] = {
        "policy": tuple(POLICIES[p].name for p, *_ in pairs),
        "cores": tuple(n for _, n, _ in pairs),
        "workloads": tuple(len(mine) for *_, mine in pairs),
        "applies to": tuple(map(len, fits)),
        "median error": tuple(quantile(v, 0.5) for v in fits),
        "95 %": tuple(quantile(v, 0.95) for v in fits),
        "largest": tuple(max(v, default=nan) for v in fits),
        "median where it does not": tuple(quantile(v, 0.5) for v in rest),
    }
    return Table("map-refined", "Errors of the refined mean field", columns)


def workloads_table(rows: Sequence[Row]) -> Table:
    """All workloads, for a closer look elsewhere."""
    columns: dict[str, tuple[Any, ...]] = {
        "workload": tuple(row.name for row in rows),
        "load": tuple(row.load for row in rows),
        "SCV": tuple(row.scv for row in rows),
        "holding costs": tuple(row.spread for row in rows),
        "speedups": tuple(row.speedups for row in rows),
        "cost of WHAM": tuple(row.cost for row in rows),
    }
    for rival in RIVALS:
        name = POLICIES[rival].name
        columns[f"{name} over WHAM"] = tuple(row.shares[rival].mean for row in rows)
        columns[f"{name} ±"] = tuple(row.shares[rival].half_width for row in rows)
    return Table("map-workloads", "All workloads", columns, shown=False)


def mostly_best(rows: Sequence[Row]) -> Verdict:
    """Whether WHAM is the best of the three on most workloads, those left open counted for neither side."""
    wins = sum(row.wins is True for row in rows)
    loses = sum(row.wins is False for row in rows)
    share = wins / len(rows)
    text = f"best on {wins} of {len(rows)} workloads ({share:.1%}), beaten on {loses}, open on the rest"
    holds = True if share >= MOSTLY else False if 1.0 - loses / len(rows) < MOSTLY else None
    return Verdict(f"WHAM is cheaper than EQUI and GREEDY on {MOSTLY:.0%} of random workloads", holds, text)


def loses_little(rows: Sequence[Row]) -> Verdict:
    """Whether WHAM's loss to the better rival stays below a limit on every workload."""
    worst = min(rows, key=lambda row: row.lead)
    rival = min(RIVALS, key=lambda name: worst.shares[name].mean)
    beyond = [row for row in rows if any(row.shares[rival].high < -LITTLE for rival in RIVALS)]
    within = all(row.shares[rival].low >= -LITTLE for row in rows for rival in RIVALS)
    share = worst.shares[rival]
    text = (
        f"most on {worst.name}, where {POLICIES[rival].name} costs {-share.mean:.2%} ± "
        f"{share.half_width:.2%} less (load {worst.load:.2f}, SCV {worst.scv:g}, holding costs up to "
        f"{worst.spread:.3g} to 1, {worst.speedups}); beyond the limit on {len(beyond)} of {len(rows)}"
    )
    holds = False if beyond else True if within else None
    return Verdict(f"Where a rival is cheaper, it is by at most {LITTLE:.0%}", holds, text)


def hardly_beaten(rows: Sequence[Row]) -> Verdict:
    """Whether losses are a matter of low loads."""
    heavy = [row for row in rows if row.load >= HEAVY]
    loses = sum(row.wins is False for row in heavy)
    open_ = sum(row.wins is None for row in heavy)
    text = f"beaten on {loses} of {len(heavy)} workloads, {open_} open"
    limit = HARDLY * len(heavy)
    holds = False if loses > limit else True if loses + open_ <= limit else None
    return Verdict(
        f"At loads of {HEAVY:g} and more it is beaten on {HARDLY:.0%} of them at most", holds, text
    )


def improved_helps(found: Sequence[tuple[str, float, float, Estimate]]) -> Verdict:
    """Whether the improved WHAM never costs more than WHAM, although it looks at no sizes."""
    better = sum(share.high < 0.0 for *_, share in found)
    worse = [one for one in found if one[3].low > 0.0]
    most = max(found, key=lambda one: one[3].mean)
    least = min(found, key=lambda one: one[3].mean)
    text = (
        f"{len(found)} workloads with exponential sizes: costs less on {better}, more on {len(worse)}; from "
        f"{least[3].mean:+.2%} ({least[0]}, load {least[2]:.2f}) to {most[3].mean:+.2%} ({most[0]}, load "
        f"{most[2]:.2f})"
    )
    sure = all(share.high <= 0.0 for *_, share in found)
    return Verdict(
        "The improved WHAM, blind to sizes, never costs more than WHAM",
        False if worse else sure or None,
        text,
    )


def refined_is_near(rows: Sequence[Row]) -> Verdict:
    """Whether the refined mean field gives WHAM's cost on nearly all workloads that it says it applies to."""
    told = [(row, row.errors["wham"]) for row in rows if "wham" in row.errors]
    applies = [(row, error) for row, (error, fits) in told if fits]
    if not applies:
        return Verdict(_REFINED, None, f"it applies to none of {len(told)} workloads")
    near = sum(abs(error) <= NEAR for _, error in applies)
    sure = sum(abs(error) > NEAR + 2.0 * row.half_width for row, error in applies)
    worst, most = max(applies, key=lambda one: abs(one[1]))
    text = (
        f"it applies to {len(applies)} of {len(told)}; within {NEAR:.0%} on {near} "
        f"({near / len(applies):.1%}), beyond it and the noise on {sure}; median "
        f"{quantile([abs(e) for _, e in applies], 0.5):.2%}, most {most:+.1%} on {worst.name}"
    )
    holds = near >= NEARLY_ALL * len(applies)
    decided = holds or sure > (1.0 - NEARLY_ALL) * len(applies)
    return Verdict(_REFINED, holds if decided else None, text)
