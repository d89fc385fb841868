"""What the cells of e09_rivals show: figures, tables and verdicts."""

from __future__ import annotations

from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e09_rivals.cells import (
    PLANNED,
    SWEEPS,
    TUNED_CORES,
    WHAM,
    cores_of,
    groups,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns, stacked
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.curves import positive
from malleable.paper.experiments.shared.policies import label
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values

START = 16
"""From this many cores on, a + b/n + c/n² is fitted to differences from WHAM; for WHAM itself from 64 on."""
DIFFERENCE = ("difference low", "difference high")
FALLS = -0.1
"""A difference from WHAM that falls with this power of n, or faster, may vanish in the end."""
MARGIN = 0.002
"""Share of V* above which a limit must lie, for sure, to count as not optimal."""
CHOICES = {
    "n": "powers of 2 from 16 to 256 (full: 512); policies that look at counts alone also up to 4096",
    "load": "0.25, as in the paper's figures",
    "run length": "at least 30 jobs per core; slow policies have the shorter runs, and wider intervals",
    "FW-CAM": "β = 0.8",
    "KNEE": "α = 0.02 mean sizes (0.008) at every n; the sweep shows others",
    "LPF": "κ of a class is the width at which cores are half used, s(κ) = κ/2; the sweep shows others",
    "A-heSRPT": "one exponent, fitted to all speedups, weighted by load; holding costs are the weights",
    "Pollux, Sia": "one resource; decide every 0.01 mean sizes in place of 60 seconds; resizes are free",
    "not optimal": (
        "the paired difference from WHAM does not fall with n, and its limit lies above "
        f"{MARGIN:.1%} of V* with 99.9 % confidence, by a + b/n + c/n² fitted to n ≥ {START}; or the policy "
        "is unstable on the most cores"
    ),
}
REMARKS = (
    ("GREEDY with weights c/x gives very many cores to jobs about to finish. It does worse on more cores."),
    (
        "Limits of policies that look at class counts are those of their mean-field equations; for the "
        "others there is only the extrapolation; its interval presumes that a + b/n + c/n² is right. For "
        "FW-CAM it is not: its gap falls as a power of n, slowly, so that the difference from WHAM tells "
        "nothing about the limit. Of the rivals, that difference grows with n."
    ),
    (
        "Pollux and Sia decide only now and then. Resizes are free here, for all policies; what they cost "
        "where they are not stands on the page 'Real machines' of the documentation."
    ),
)


def findings(effort: Effort, values: Values) -> Findings:
    """One table, one plot, and a verdict on every rival."""
    lowest = values["limits"]["bound"]
    rivals = {p: rival_of(p, group, effort, values) for group, ps in groups(effort).items() for p in ps}
    wham = wham_of(effort, values)
    return Findings(
        title="Rivals against the lower bound",
        source="Section: Comparison to heuristics",
        statement=(
            "A policy is mean field optimal if its cost tends to the lower bound V* as cores and arrival "
            "rates grow together. The paper says that EQUI, GREEDY, HELL, KNEE and A-heSRPT can easily be "
            "shown not to be, and shows it for the first two. Here all of them, the schedulers Pollux and "
            "Sia reduced to one resource, and LPF, are run on the same jobs as WHAM, on more and more cores. "
            "What counts is whether the share by which they cost more than V* is left when WHAM's has gone."
        ),
        figures=(figure(values["limits"], wham, rivals), *sweep_figure(values, lowest)),
        tables=(
            table(lowest, wham, rivals),
            limits_table(values["limits"], rivals),
            *sweep_table(values, lowest),
        ),
        verdicts=(
            wham_verdict(wham, lowest),
            *(verdict_of(p, rival, values["limits"]) for p, rival in rivals.items() if p != PLANNED),
            *tuned_verdicts(values),
        ),
        remarks=(_hell(values["limits"]), *REMARKS),
    )


def _hell(known: Any) -> str:
    return (
        "HELL gives a job of class 2, with s = √k, every core there is: all widths have the same merit, and "
        "ties go to the widest. On n cores such a job runs only √n times as fast, so beyond "
        f"{known['crowded']:.0f} cores work of class 2 alone arrives faster than it is done, at load 0.25."
    )


class Rival:
    """What the simulations say about one policy over n."""

    def __init__(self, cores: Sequence[int], found: Sequence[Any], policy: str) -> None:
        runs = [Compared(value) for value in found]
        self.label = label(policy)
        self.cores = tuple(cores)
        self.results = tuple(run.result(policy) for run in runs)
        self.stable = tuple(run.stable(policy) for run in runs)
        self.costs = tuple(run.cost(policy) for run in runs)
        self.differences = tuple(run.apart(policy) for run in runs)

    def ratios(self, lowest: float) -> tuple[Estimate, ...]:
        """Costs over the bound; none where the policy is unstable."""
        return tuple(one.over(lowest) for one in self._where_stable(self.costs))

    def above(self, lowest: float) -> tuple[Estimate, ...]:
        """Differences from WHAM over the bound; none where the policy is unstable."""
        return tuple(one.over(lowest) for one in self._where_stable(self.differences))

    def margin(self, lowest: float) -> Estimate:
        """The limit of its difference from WHAM, over the bound."""
        found, _ = ev.limit(self.cores, self._where_stable(self.differences), START)
        return found.over(lowest)

    @property
    def growth(self) -> Estimate:
        """The power of n with which its difference from WHAM grows or falls."""
        return ev.power(self.cores, self._where_stable(self.differences))[0]

    def _where_stable(self, found: Sequence[Estimate]) -> list[Estimate]:
        return [one if good else Estimate() for one, good in zip(found, self.stable, strict=True)]


def rival_of(policy: str, group: str, effort: Effort, values: Values) -> Rival:
    """A policy's results by number of cores."""
    cores = cores_of(effort, group)
    return Rival(cores, [values[f"{group}-{n}"] for n in cores], policy)


def wham_of(effort: Effort, values: Values) -> Rival:
    """WHAM, from its longest runs."""
    group = next(iter(groups(effort)))
    cores = cores_of(effort, group)
    return Rival(cores, [values[f"{group}-{n}"] for n in cores], WHAM)


def figure(known: Any, wham: Rival, rivals: dict[str, Rival]) -> Figure:
    """Costs over the bound, and over WHAM."""
    lowest = known["bound"]
    shown = {WHAM: wham, **rivals}
    costs, margins = [], []
    for policy, rival in shown.items():
        name, colour = rival.label
        x = tuple(map(float, rival.cores))
        costs.append(Series.of(name, x, rival.ratios(lowest), "both", colour))
        if policy != WHAM:
            margins.append(Series.of(name, x, positive(rival.above(lowest)), "both", colour))
        if policy in known and policy != WHAM:
            ends = (float(wham.cores[0]), float(wham.cores[-1]))
            limit = known[policy] / lowest - 1.0
            margins.append(Series(f"{name}, limit", ends, (limit, limit), style="dotted", colour=colour))
    marks = tuple(
        (float(n), 1.0, f"{rival.label.name}: unstable")
        for rival in rivals.values()
        for n, ok in zip(rival.cores, rival.stable, strict=True)
        if not ok
    )
    return Figure(
        "rivals",
        "Rivals against the lower bound",
        "First: cost over V* at load 0.25 as the number of cores grows, with 95 % intervals; 1 is as good as "
        "any policy can be. Where a policy is unstable it has no cost. Second: what each costs more than "
        "WHAM on the same jobs, over V*; dotted lines are limits from mean-field equations. WHAM comes "
        "down to the bound, FW-CAM slowly so; the others level off above it.",
        (
            Panel(Axis("cores n", "log"), Axis("cost / V*", "log"), tuple(costs), marks=marks),
            Panel(Axis("cores n", "log"), Axis("(cost − cost of WHAM) / V*", "log"), tuple(margins)),
        ),
    )


def table(lowest: float, wham: Rival, rivals: dict[str, Rival]) -> Table:
    """All costs, and all paired differences."""
    parts = [
        {
            "policy": (rival.label.name,) * len(rival.cores),
            "cores": rival.cores,
            **interval_columns("cost", rival.costs),
            "cost / V*": tuple(one.mean for one in rival.ratios(lowest)),
            **interval_columns("difference from WHAM", rival.differences, *DIFFERENCE),
            "stable": rival.stable,
            "jobs simulated": tuple(None if r is None else r["jobs"] for r in rival.results),
        }
        for rival in (wham, *rivals.values())
    ]
    return Table("rivals", "Costs over n, all paired with WHAM (95 %)", stacked(parts))


def limits_table(known: Any, rivals: dict[str, Rival]) -> Table:
    """What the costs tend to."""
    lowest = known["bound"]
    powers = {p: rival.growth for p, rival in rivals.items()}
    # What falls as a power of n is no a + b/n + c/n², so that there is nothing to extrapolate.
    margins = {p: Estimate() if powers[p].high < FALLS else r.margin(lowest) for p, r in rivals.items()}
    columns = {
        "policy": tuple(rival.label.name for rival in rivals.values()),
        "mean-field limit / V*": tuple(known[p] / lowest if p in known else nan for p in rivals),
        **interval_columns("extrapolated (cost − WHAM) / V*", margins.values()),
        **interval_columns("(cost − WHAM) as a power of n", powers.values(), "power low", "power high"),
    }
    return Table("rivals-limits", "Limits for many cores (99.9 %), and powers of n (95 %)", columns)


def _sweeps(values: Values) -> list[tuple[str, str, Compared]]:
    """Rival, setting, and the cell that has tried it."""
    return [
        (policy, variant, Compared(values[f"sweep-{policy}"]))
        for policy, variants in SWEEPS.items()
        if f"sweep-{policy}" in values
        for variant in variants
    ]


def sweep_table(values: Values, lowest: float) -> tuple[Table, ...]:
    """All settings of the rivals' parameters."""
    rows = _sweeps(values)
    if not rows:
        return ()
    costs = [found.cost(variant) for _, variant, found in rows]
    columns: dict[str, tuple[Any, ...]] = {
        "policy": tuple(label(policy).name for policy, *_ in rows),
        "setting": tuple(variant for _, variant, _ in rows),
        **interval_columns("cost", costs),
        "cost / V*": tuple(cost.mean / lowest for cost in costs),
        **interval_columns("difference from WHAM", (found.apart(v) for _, v, found in rows), *DIFFERENCE),
        "stable": tuple(found.stable(variant) for _, variant, found in rows),
    }
    return (Table("rivals-settings", f"Settings of the rivals on {TUNED_CORES} cores (95 %)", columns),)


def sweep_figure(values: Values, lowest: float) -> tuple[Figure, ...]:
    """Costs over the parameters of KNEE and LPF, if they were swept."""
    panels = []
    for policy, title in (("knee", "α of KNEE"), ("lpf", "efficiency of LPF")):
        rows = [row for row in _sweeps(values) if row[0] == policy]
        if not rows:
            return ()
        x = tuple(float(variant.partition("=")[2]) for _, variant, _ in rows)
        ratios = [found.cost(v).over(lowest) if found.stable(v) else Estimate() for _, v, found in rows]
        ours = rows[0][2].cost(WHAM).mean / lowest
        name, colour = label(policy)
        series = (
            Series.of(name, x, ratios, "both", colour),
            Series("WHAM", (x[0], x[-1]), (ours, ours), style="dashed", colour=0),
        )
        panels.append(Panel(Axis(title, "log" if policy == "knee" else "linear"), Axis("cost / V*"), series))
    return (
        Figure(
            "rivals-settings",
            "Settings of KNEE and LPF",
            f"Cost over V* on {TUNED_CORES} cores for other values of the parameter, with 95 % intervals; no "
            "value does as well as WHAM.",
            tuple(panels),
        ),
    )


def wham_verdict(wham: Rival, lowest: float) -> Verdict:
    """Whether WHAM's costs tend to the bound."""
    found, points = ev.limit(wham.cores, wham.costs, 64)
    last = wham.ratios(lowest)[-1]
    note = f"{points} points; ratio {last.mean:.5f} ± {last.half_width:.5f} on {wham.cores[-1]} cores"
    return ev.tends_to("WHAM's cost over V* tends to 1", found, lowest, 0.02, note)


def verdict_of(policy: str, rival: Rival, known: Any) -> Verdict:
    """Not optimal: unstable on many cores, or above WHAM by a margin that does not vanish."""
    name, lowest = rival.label.name, known["bound"]
    statement = f"{name} is not mean field optimal"
    if not rival.stable[-1]:
        good = [n for n, ok in zip(rival.cores, rival.stable, strict=True) if ok]
        least = f"stable up to {max(good)} cores only" if good else "stable on none of the numbers of cores"
        text = f"unstable on {rival.cores[-1]} cores, {least}: its cost grows without bound"
        return Verdict(statement, True if rival.results[-1] is not None else None, text)
    ratio, apart, margin = rival.ratios(lowest)[-1], rival.differences[-1], rival.margin(lowest)
    text = (
        f"ratio {ratio.mean:.4f} ± {ratio.half_width:.4f} on {rival.cores[-1]} cores, there "
        f"{apart.mean / lowest:.2%} ± {apart.half_width / lowest:.2%} of V* above WHAM"
    )
    if policy in known:
        limit = known[policy] / lowest
        sure = apart.low > 0.0 and limit > 1.0 + MARGIN
        text += f"; its limit is {limit:.6f}"
        return Verdict(statement, True if sure else False if limit <= 1.0 + MARGIN else None, text)
    if not isfinite(margin.half_width):
        return Verdict(statement, None, f"{text}; too few points for a limit")
    growth = rival.growth
    text += (
        f", which goes as n to the power {growth.mean:+.2f} ± {growth.half_width:.2f}; extrapolated "
        f"{margin.mean:.2%} ± {margin.half_width:.2%} (99.9 %)"
    )
    if margin.high <= MARGIN:
        return Verdict(statement, False, text)
    sure = apart.low > 0.0 and margin.low > MARGIN and growth.low > FALLS
    return Verdict(statement, sure or None, text)


def tuned_verdicts(values: Values) -> tuple[Verdict, ...]:
    """Whether any setting of a rival's parameters does as well as WHAM."""
    made = []
    for policy, variants in SWEEPS.items():
        if f"sweep-{policy}" not in values:
            continue
        found = Compared(values[f"sweep-{policy}"])
        apart = {variant: found.apart(variant) for variant in variants if found.stable(variant)}
        best = min(apart, key=lambda v: apart[v].mean)
        cost = found.cost(WHAM).mean
        text = (
            f"best of {len(variants)} on {TUNED_CORES} cores: {best}, {apart[best].mean / cost:.2%} ± "
            f"{apart[best].half_width / cost:.2%} above WHAM"
        )
        least = min(d.low for d in apart.values())
        holds = True if least > 0.0 else False if min(d.high for d in apart.values()) < 0.0 else None
        made.append(Verdict(f"No setting of {label(policy).name} does as well as WHAM", holds, text))
    return tuple(made)
