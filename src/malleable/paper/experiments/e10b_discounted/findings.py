"""What the cells of e10b_discounted show: figures, tables and verdicts."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e10b_discounted.cells import (
    LARGE,
    MAP_CORES,
    RANDOM,
    RULE,
    exact_settings,
    fixed_policies,
    grid_of,
    map_loads,
    seeds_of,
    settings_of,
    whittles_of,
)
from malleable.paper.experiments.e10b_discounted.discounting import HELD_OUT, random_setting
from malleable.paper.experiments.shared.comparisons import (
    NEGLIGIBLE,
    Compared,
    Gain,
    gain,
    gains_table,
    never_worse,
    together,
)
from malleable.paper.experiments.shared.workloads import key_of
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate

SMALL, BUSY = 16, (0.5, 0.7, 0.8)
"""Up to this many cores, and at these loads, the gain on the four-class mix is to be seen."""
CHOICES = {
    "α by the rule": "1/α = 1/γ + W/(n − Σ load): see the policy",
    "four": "k^0.4, k^0.8, Amdahl 0.1 and 0.3; mean sizes 1, 0.6, 1.5, 0.9; costs 0.4, 1, 1.5, 3",
    "hyper, equal": "the same mix with hyperexponential sizes (SCV about 4.6), and with all costs 1",
    "held out": f"{RANDOM} random workloads with seeds from {HELD_OUT} on; n = 3 to 64, ρ = 0.3 to 0.95",
    "comparisons": "on the same jobs; intervals of the paired differences; 99 %, each and all together",
}


def findings(effort: Effort, values: Values) -> Findings:
    """The gains, and what they say."""
    named = {one: named_gain("at", *one, RULE, values) for one in settings_of(effort)}
    random = [random_gain(seed, values) for seed in seeds_of(effort)]
    exact = [named_gain("at", "two", n, load, RULE, values) for n, load in exact_settings(effort)]
    busy = [g for (w, n, r), g in named.items() if w == "four" and n <= SMALL and r in BUSY]
    load = BUSY[0] if effort.quick else LARGE[1]
    growing = {n: g for (w, n, r), g in named.items() if w == "four" and r == load}
    rule, whittles = over_loads(effort, values, RULE), whittles_of(effort)
    return Findings(
        title="Expecting shortages to end",
        source="beyond the paper (its discounted Whittle policy, before the limit α → 0)",
        statement=(
            "WHAM prices cores as if today's shortage lasted forever. A discount rate α > 0 says that it "
            "ends, so that a job of low value had better wait. Whittle's policy at a fixed α expects cores "
            "to be free afterwards; that helps at a low load and may ruin a high one. `wham-discounted` "
            "expects the price of the long run, and takes α from the relaxation rate of the mean field and "
            "the queue at hand. Is it never worse than WHAM, and better on few cores?"
        ),
        figures=(alpha_figure(effort, values), grid_figure(effort, named)),
        tables=(
            gains_table("discounted", "Cost of wham-discounted relative to WHAM", [*named.values(), *exact]),
            gains_table("discounted-random", "The same on random workloads that were held out", random),
            gains_table(
                "discounted-alpha", "Over the discount, four classes", all_over_alpha(effort, values)
            ),
            optimum_table(effort, exact, values),
        ),
        verdicts=(
            never_worse(
                f"On the map the rule costs nowhere more than WHAM by over {NEGLIGIBLE:.2%}",
                [*named.values(), *exact, *rule],
            ),
            never_worse("Nor is it on the random workloads that were held out", random),
            better(f"With four classes it is cheaper on 4 to {SMALL} cores at ρ from 0.5 to 0.8", busy),
            fades(f"With more cores its cost tends to WHAM's (four classes, ρ = {load:g})", growing),
            outdone(
                "No single α of Whittle's policy is as good as the rule at all loads (four classes)",
                rule,
                {policy: over_loads(effort, values, policy) for policy in whittles},
            ),
        ),
        remarks=(
            (
                "With m comparisons a verdict uses intervals of level 1 − 0.01/m; the tables have 99 % "
                "intervals one by one, of which one in a hundred may be wrong."
            ),
            (
                "The rule was chosen on the named workloads and on 124 random ones of other seeds than those "
                "that are held out. A search for settings on which it fails found small losses; see the page "
                "on the discounted Whittle policy in the documentation."
            ),
            "On fewer than two cores the policy is WHAM: one job at a time has all there is.",
            (
                "The optimum is that of policies that do not know sizes. WHAM in overload and the discounted "
                "policy at any time use them, so they may cost less: it is a yardstick and no bound."
            ),
        ),
    )


def named_gain(what: str, workload: str, cores: int, load: float, policy: str, values: Values) -> Gain:
    """The gain on a workload that has a name."""
    name = f"{workload}, n = {cores}, ρ = {load:g}"
    return gain(name, policy, values[key_of(what, workload, cores, load)])


def random_gain(seed: int, values: Values) -> Gain:
    """The gain on a random workload."""
    _, cores, load = random_setting(seed)
    return gain(f"random {seed}, n = {cores}, ρ = {load:.2f}", RULE, values[f"random-{seed}"])


def over_loads(effort: Effort, values: Values, policy: str) -> list[Gain]:
    """One policy of the map at all its loads."""
    return [named_gain("map", "four", MAP_CORES, load, policy, values) for load in map_loads(effort)]


def all_over_alpha(effort: Effort, values: Values) -> list[Gain]:
    """Gains of all policies that have an α."""
    return [
        one._replace(name=f"{policy}; {one.name}")
        for policy in (*whittles_of(effort), *fixed_policies(effort), RULE)
        for one in over_loads(effort, values, policy)
    ]


def alpha_figure(effort: Effort, values: Values) -> Figure:
    """Gains by α, of Whittle's policy and of the rule."""
    y = Axis("cost relative to WHAM, %", low=-8.0, high=8.0)
    panels = []
    for kind, policies in (("whittle", whittles_of(effort)), (RULE, fixed_policies(effort))):
        alphas = [float(policy.partition("=")[2]) for policy in policies]
        series = []
        for colour, (load, rate) in enumerate(zip(map_loads(effort), values["rates"], strict=True)):
            found = [
                named_gain("map", "four", MAP_CORES, load, policy, values).percent for policy in policies
            ]
            series.append(Series.of(f"ρ = {load:g}", alphas, found, "both", colour))
            if kind == RULE:
                mean = named_gain("map", "four", MAP_CORES, load, RULE, values).percent.mean
                series.append(
                    Series(f"the rule, ρ = {load:g}", (rate,), (mean,), style="points", colour=colour)
                )
        title = "whittle" if kind == "whittle" else f"{RULE} at a fixed α"
        panels.append(Panel(Axis("α", "log"), y, tuple(series), title=title))
    return Figure(
        "discounted-alpha",
        f"Gain over the discount, four classes, n = {MAP_CORES}",
        "Cost relative to WHAM's on the same jobs; below 0 is cheaper (95 %). First: Whittle's policy, which "
        "expects cores to be free after the discount. Second: only the premium over the long-run price is "
        "discounted, at a fixed α. Single points are the rule, drawn at its α while no job waits; in a queue "
        "it is lower. What lies above the frame is cut off.",
        tuple(panels),
    )


def grid_figure(effort: Effort, named: dict[tuple[str, int, float], Gain]) -> Figure:
    """Gains by cores and load."""
    cores, loads = grid_of(effort)
    z = tuple(tuple(named["four", n, load].percent.mean for n in cores) for load in loads)
    grid = Grid(tuple(map(float, cores)), loads, z, "cost relative to WHAM, %", middle=0.0)
    return Figure(
        "discounted-grid",
        "Gain of the rule, four classes",
        "Cost of wham-discounted relative to WHAM's on the same jobs, over n and ρ.",
        (Panel(Axis("cores n", "log"), Axis("load ρ"), grid=grid),),
    )


def optimum_table(effort: Effort, gains: Sequence[Gain], values: Values) -> Table:
    """Costs beside the exact optimum of policies that do not know sizes."""
    columns: dict[str, list[Any]] = {
        "setting": [one.name for one in gains],
        "best blind to sizes (exact)": [],
    }
    for n, load in exact_settings(effort):
        best = values[key_of("optimum", "two", n, load)]
        columns["best blind to sizes (exact)"].append(nan if failed(best) else best["cost"])
    for policy in ("wham", RULE):
        costs = []
        for n, load in exact_settings(effort):
            costs.append(Compared(values[key_of("at", "two", n, load)]).cost(policy).mean)
        columns[policy] = costs
        best = columns["best blind to sizes (exact)"]
        columns[f"{policy} above it"] = [c / b - 1.0 for c, b in zip(costs, best, strict=True)]
    return Table(
        "discounted-optimum",
        "Beside the best policy that does not know sizes (simulated)",
        {key: tuple(column) for key, column in columns.items()},
    )


def better(statement: str, gains: Sequence[Gain]) -> Verdict:
    """All intervals must lie below 0; one above refutes it."""
    known = together(gains)
    text = ", ".join(f"{one.of.mean:+.1%} ({one.name.partition(', ')[2]})" for one in gains)
    if any(e.low > 0.0 for e in known):
        return Verdict(statement, False, text)
    return Verdict(statement, all(e.high < 0.0 for e in known) or None, text)


def fades(statement: str, by_cores: Mapping[int, Gain]) -> Verdict:
    """At the most cores the gain must be surely less than half of that at the fewest."""
    points = sorted(by_cores.items())
    first, last = together([points[0][1], points[-1][1]])
    text = ", ".join(f"{one.of.mean:+.2%} at n = {n}" for n, one in points)
    if _least(last) > _most(first):
        return Verdict(statement, False, text)
    return Verdict(statement, _most(last) < 0.5 * _least(first) or None, text)


def _least(of: Estimate) -> float:
    """The least size that the interval allows."""
    return max(of.low, -of.high, 0.0)


def _most(of: Estimate) -> float:
    return max(-of.low, of.high)


def outdone(statement: str, rule: Sequence[Gain], others: Mapping[str, Sequence[Gain]]) -> Verdict:
    """Each of the others must surely cost more than the rule in one of the settings at least."""
    text, lost = [], []
    for name, gains in others.items():
        where = [
            f"{theirs.mean - ours.mean:+.1%} ({setting.name})"
            for setting, ours, theirs in zip(rule, together(rule), together(gains), strict=True)
            # Both are differences from WHAM on the same jobs; adding the half-widths errs on the safe side.
            if theirs.low > ours.high
        ]
        lost.append(bool(where))
        text.append(f"{name}: {', '.join(where) or 'nowhere'}")
    return Verdict(statement, all(lost) or None, f"costs more than the rule, {'; '.join(text)}")
