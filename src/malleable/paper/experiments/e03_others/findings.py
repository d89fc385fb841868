"""What the cells of e03_others show: figures, tables and verdicts."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e03_others.cells import LIMITS, VARIANTS, auto_cores, cores_of
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared, gain, gains_table, never_worse
from malleable.paper.experiments.shared.curves import Curve, costs_table, positive
from malleable.paper.experiments.shared.known_jobs import known_bounds, known_series
from malleable.paper.experiments.shared.policies import POLICIES, RIVALS, Label
from malleable.paper.simulation_cells import PAPERS
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from malleable.paper.contracts import Values

SETTLED = 512
"""From this many cores on, a + b/n + c/n² is fitted: the next term is below 0.01 % there."""
PRECISE, PRECISE_DIFFERENCE = 0.02, 0.25
"""Relative half-widths to which limits of costs, and of differences, must be known to count."""
CHOICES = {
    "n": "powers of 2 from 1 to 16384; the load stays 0.25, so arrival rates grow with n",
    "GREEDY": (
        "maximises the rate of work, as the paper has it, not that of departures; with more jobs than cores "
        "all jobs tie, and the earliest go first"
    ),
    "EQUI": "with more jobs than cores each gets n/N of a core, at speed n/N",
    "run length": (
        "all three policies on the same jobs until the 95 % intervals are ±0.2 % (full: ±0.05 %, with a GPU "
        "±0.01 %)"
    ),
    "warm-up": "found by MSER-5 and left out",
    "differences": "rival minus WHAM on the same jobs, batch by batch",
    "limits": f"from a + b/n + c/n² fitted to n ≥ {SETTLED}, with 99.9 % intervals",
    "exact costs": f"Markov chains cut off at {', '.join(f'{m} jobs (n = {n})' for n, m in LIMITS.items())}",
}


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the differences, and what they say."""
    cores, known = cores_of(effort), values["limits"]
    curves = {policy: curve_of(policy, cores, values) for policy in PAPERS}
    differences = {policy: differences_of(policy, cores, values) for policy in RIVALS}
    cases = [case for curve in curves.values() for case in curve.cases()]
    best = {n: values[f"auto-{n}"] for n in auto_cores(effort)}
    gains = [gain(f"n = {n}", "auto", one) for n, one in best.items()]
    return Findings(
        title="WHAM against EQUI and GREEDY",
        source="Figure 2b: WHAM vs. EQUI and GREEDY",
        statement=(
            "EQUI gives every job the same number of cores. GREEDY gives each core to the job that gains "
            "most speed from it, so that most work is done right now. The paper claims that WHAM's cost "
            "tends to the lower bound V*, that the other two stay above it, and that WHAM is better on any "
            "number of cores. GREEDY is within about one percent of WHAM, so all policies are run on the "
            "same jobs and the differences are estimated directly."
        ),
        figures=(costs_figure(known, curves, differences, known_bounds(cores, values), best),),
        tables=(
            costs_table("others", "Costs over n", curves.values(), known["bound"]),
            differences_table(cores, curves["wham"], differences),
            limits_table(known, curves, differences),
            gains_table("others-auto", "The best policy by trial (`auto`) beside WHAM", gains),
        ),
        verdicts=(
            same_limit(known),
            wham_converges(known, curves["wham"]),
            *(stays_above(policy, known, cores, differences[policy]) for policy in RIVALS),
            *(wham_is_better(policy, cores, differences[policy]) for policy in RIVALS),
            ev.agreement("Simulated costs agree with those of the exact Markov chains", cases),
            never_worse("auto, the best policy by trial, costs no more than WHAM", gains),
        ),
        remarks=(*_remarks(values), _chosen(best)),
    )


def _remarks(values: Values) -> tuple[str, ...]:
    known = values["limits"]
    ratios = (f"{v} {known[f'greedy:weight={k}']['cost'] / known['bound']:.4f}" for k, v in VARIANTS.items())
    crowded = max(values[f"exact-{policy}-16"]["overload"] for policy in PAPERS)
    return (
        (
            "With one core there is nothing to share out: WHAM serves the job with the largest ratio of "
            "holding cost to remaining size, EQUI shares the core, GREEDY serves in order of arrival."
        ),
        (
            "The exact chains let all jobs share time when they are as many as the cores or more, which "
            f"happens with probability {crowded:.1g} on 16 cores."
        ),
        (
            "Berg et al. have GREEDY maximise the rate of departures. The paper maximises that of work. "
            f"Limits over V* for other weights: {'; '.join(ratios)}."
        ),
    )


def _chosen(best: Mapping[int, Any]) -> str:
    """What `auto` is on each number of cores."""
    names = ", ".join(f"{one['chosen']} on {n}" for n, one in best.items() if not failed(one))
    return f"auto runs what is cheapest in a short simulation: {names or 'nothing'} cores."


def curve_of(policy: str, cores: tuple[int, ...], values: Values) -> Curve:
    """Simulated and exact costs of a policy."""
    exact = (values.get(f"exact-{policy}-{n}") for n in cores)
    found = {n: values[f"compared-{n}"] for n in cores}
    return Curve.simulated_by(policy, POLICIES[policy], found, [one["cost"] if one else nan for one in exact])


def differences_of(policy: str, cores: tuple[int, ...], values: Values) -> tuple[Estimate, ...]:
    """Differences of a policy's cost from WHAM's, on the same jobs."""
    return tuple(Compared(values[f"compared-{n}"]).apart(policy) for n in cores)


def costs_figure(
    known: Any,
    curves: dict[str, Curve],
    differences: Any,
    least: tuple[Estimate, ...],
    best: Mapping[int, Any],
) -> Figure:
    """Costs of the three policies, and how far EQUI and GREEDY stay above WHAM."""
    wham = curves["wham"]
    n = wham.x
    costs = [curve.series("both") for curve in curves.values()]
    costs.append(known_series(n, least))
    name, colour = POLICIES["auto"]
    tried = tuple(Compared(one).cost("auto") for one in best.values())
    costs.append(Series.of(name, tuple(map(float, best)), tried, "both", colour))
    limit = Label("V*, the lower bound (WHAM's limit)", 6)
    dashed = {"wham": limit, **{p: Label(f"{POLICIES[p].name}, limit", POLICIES[p].colour) for p in RIVALS}}
    costs += [
        Series(name, n, (known[p]["cost"],) * len(n), style="dashed", colour=colour)
        for p, (name, colour) in dashed.items()
    ]
    above, told = [], []
    for p in RIVALS:
        name, colour = POLICIES[p]
        shown = positive(differences[p])
        apart = [d.over(w.mean) for d, w in zip(shown, wham.simulated, strict=True)]
        above.append(Series.of(name, n, apart, "both", colour))
        predicted = _predicted(p, known, n)
        told.append(Series(f"{name}, refined mean field", n, predicted, style="dotted", colour=colour))
    return Figure(
        "others",
        "WHAM, EQUI and GREEDY",
        "First: mean holding cost per job over the number of cores n at load 0.25, simulated with 95 % "
        "intervals; dashed lines are the mean-field limits, and the line below the costs is the least that a "
        "policy could cost that knew all jobs beforehand. Second: by how much of WHAM's cost the rival "
        "costs more, from paired differences on the same jobs; dotted lines are what the refined mean field "
        "predicts for many cores.",
        (
            Panel(Axis("cores n", "log"), Axis("cost", "log"), tuple(costs)),
            Panel(Axis("cores n", "log"), Axis("cost / cost of WHAM − 1", "log"), (*above, *told)),
        ),
    )


def _predicted(policy: str, known: Any, n: tuple[float, ...]) -> tuple[float, ...]:
    """The refined mean field's ratio to WHAM, where it makes sense: from 64 cores on."""
    costs = [[known[p]["cost"] + known[p]["coefficient"] / x for x in n] for p in (policy, "wham")]
    return tuple(theirs / ours - 1.0 if x >= 64 else nan for x, theirs, ours in zip(n, *costs, strict=True))


def differences_table(cores: tuple[int, ...], wham: Curve, differences: Any) -> Table:
    """Differences from WHAM by number of cores."""
    columns: dict[str, tuple[Any, ...]] = {"cores": cores}
    for policy, found in differences.items():
        name = f"{POLICIES[policy].name} − WHAM"
        columns |= interval_columns(name, found, f"{name} low", f"{name} high")
        columns[f"{name}, share of WHAM"] = tuple(
            d.mean / w.mean for d, w in zip(found, wham.simulated, strict=True)
        )
    return Table("others-differences", "Paired differences of cost (95 %)", columns)


def limits_table(known: Any, curves: dict[str, Curve], differences: Any) -> Table:
    """Limits by theory beside those that simulation points to."""
    cores = curves["wham"].cores
    costs = [ev.limit(cores, curve.simulated, SETTLED)[0] for curve in curves.values()]
    apart = [ev.limit(cores, differences[p], SETTLED)[0] if p in RIVALS else Estimate() for p in curves]
    beyond = "extrapolated − WHAM"
    columns = {
        "policy": tuple(POLICIES[p].name for p in curves),
        "mean-field limit": tuple(known[p]["cost"] for p in curves),
        "over V*": tuple(known[p]["cost"] / known["bound"] for p in curves),
        "1/n coefficient": tuple(known[p]["coefficient"] for p in curves),
        **interval_columns("extrapolated", costs, "extrapolated low", "extrapolated high"),
        **interval_columns(beyond, apart, f"{beyond} low", f"{beyond} high"),
    }
    return Table("others-limits", "Limits for many cores (99.9 %)", columns)


def same_limit(known: Any) -> Verdict:
    """Whether the mean field of WHAM costs V*, and that of the others more."""
    lowest, cost = known["bound"], known["wham"]["cost"]
    ratios = {POLICIES[p].name: known[p]["cost"] / lowest for p in RIVALS}
    told = ", ".join(f"{name} {ratio:.6f}" for name, ratio in ratios.items())
    return Verdict(
        "In the mean-field limit WHAM costs V*, EQUI and GREEDY cost more",
        abs(cost / lowest - 1.0) < 1e-9 and all(ratio > 1.0 + 1e-9 for ratio in ratios.values()),
        f"V* = {lowest:.10f}, WHAM's limit {cost:.10f}; limits over V*: {told}",
    )


def wham_converges(known: Any, wham: Curve) -> Verdict:
    """Whether WHAM's costs tend to the bound."""
    found, points = ev.limit(wham.cores, wham.simulated, SETTLED)
    note = f"{points} points; {wham.simulated[-1]} on {wham.cores[-1]} cores"
    return ev.tends_to("Simulated WHAM tends to V*", found, known["bound"], PRECISE, note)


def stays_above(policy: str, known: Any, cores: tuple[int, ...], differences: Any) -> Verdict:
    """The limit of the paired difference must be the mean field's, and not 0."""
    aim = known[policy]["cost"] - known["wham"]["cost"]
    found, points = ev.limit(cores, differences, SETTLED)
    ratio = 1.0 + found.mean / known["bound"]
    note = (
        f"{points} points; limit ratio {ratio:.5f}, in theory {known[policy]['cost'] / known['bound']:.5f}; "
        f"difference on {cores[-1]} cores {differences[-1]}"
    )
    statement = f"Simulated {POLICIES[policy].name} stays above WHAM by its mean-field limit"
    verdict = ev.tends_to(statement, found, aim, PRECISE_DIFFERENCE, note)
    holds = verdict.holds and aim > 0.0 and found.low > 0.0
    return Verdict(statement, holds, verdict.measured)


def wham_is_better(policy: str, cores: tuple[int, ...], differences: Any) -> Verdict:
    """Decided for every n by the interval of the paired difference."""
    better = [n for n, d in zip(cores, differences, strict=True) if d.low > 0.0]
    worse = [n for n, d in zip(cores, differences, strict=True) if d.high < 0.0]
    open_ = [n for n in cores if n not in {*better, *worse}]
    told = "; ".join(
        f"{word} for n = {', '.join(map(str, group))}"
        for word, group in (("better", better), ("worse", worse), ("undecided", open_))
        if group
    )
    least = min(differences, key=lambda d: d.low / max(d.half_width, 1e-300))
    text = f"{told}; least clear difference {least.mean:.3g} ({least.low:.3g} to {least.high:.3g})"
    statement = f"WHAM is better than {POLICIES[policy].name} at every n"
    return Verdict(statement, False if worse else None if open_ else True, text)
