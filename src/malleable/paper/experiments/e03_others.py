"""WHAM against EQUI and GREEDY as the number of cores grows: Figure "WHAM vs. EQUI and GREEDY"."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort, Findings, Table, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._chains import LIMITS, exact_cost
from malleable.paper.experiments._curves import Curve, costs_table, drawn, high, low
from malleable.paper.simulation_cells import compared, effort_arguments
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LOAD = 0.25
POLICIES = {"wham": ("WHAM", 0), "equi": ("EQUI", 2), "greedy": ("GREEDY", 3)}
"""Names and colours."""
RIVALS = ("equi", "greedy")
SEED = 3
VARIANTS = {"mu": "departures, w = μ", "c": "value, w = c", "cmu": "value of departures, w = cμ"}
"""Other things that GREEDY may maximise, of which only the limits are worked out."""
QUICK_CORES = (4, 16, 512, 1024, 2048)
CORES = tuple(2**i for i in range(15))
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
    "run length": "all three policies on the same jobs until the 95 % intervals are ±0.2 % (full: ±0.05 %)",
    "warm-up": "found by MSER-5 and left out",
    "differences": "rival minus WHAM on the same jobs, batch by batch",
    "limits": f"from a + b/n + c/n² fitted to n ≥ {SETTLED}, with 99.9 % intervals",
    "exact costs": f"Markov chains cut off at {', '.join(f'{m} jobs (n = {n})' for n, m in LIMITS.items())}",
}


def cells(effort: Effort) -> list[Cell]:
    """Simulations by n, all policies on the same jobs; exact costs on few cores; the mean-field limits."""
    made = [Cell("limits", limits, {}, 0.3)]
    made += [
        Cell(
            f"exact-{policy}-{n}",
            exact_cost,
            {"policy": policy, "cores": n, "load": LOAD, "limit": most},
            2e-8 * most**5,
        )
        for n, most in LIMITS.items()
        for policy in POLICIES
        if n == 16 or not effort.quick
    ]
    run = {"policies": list(POLICIES), "load": LOAD, "seed": SEED, **effort_arguments(effort)}
    run["jobs"] = effort.jobs if effort.quick else effort.jobs // 2
    made += [
        Cell(f"compared-{n}", compared, {**run, "cores": n}, effort.jobs * (1.0 + n / 8000) / 2e6)
        for n in _cores(effort)
    ]
    return made


def _cores(effort: Effort) -> tuple[int, ...]:
    return QUICK_CORES if effort.quick else CORES


def limits() -> dict[str, Any]:
    """The bound, and each policy's mean-field limit with its correction of order 1/n."""
    n = 1024
    workload = paper_workload(n, LOAD)
    names = [*POLICIES, *(f"greedy:weight={weight}" for weight in VARIANTS)]
    points = {policy: mean_field(workload, n, Policy.of(policy), starts=0) for policy in names}
    return {
        "bound": bound(workload, n).bound,
        **{p: {"cost": m.cost, "coefficient": m.refined.coefficient} for p, m in points.items()},
    }


def findings(effort: Effort, values: Values) -> Findings:
    """The figure, the differences, and what they say."""
    cores, known = _cores(effort), values["limits"]
    curves = {policy: _curve(policy, cores, values) for policy in POLICIES}
    differences = {policy: _differences(policy, cores, values) for policy in RIVALS}
    cases = [case for curve in curves.values() for case in curve.cases()]
    return Findings(
        title="WHAM against EQUI and GREEDY",
        source="Figure: WHAM vs. EQUI and GREEDY",
        statement=(
            "EQUI gives every job the same number of cores. GREEDY gives each core to the job that gains "
            "most speed from it, so that most work is done right now. The paper claims that WHAM's cost "
            "tends to the lower bound V*, that the other two stay above it, and that WHAM is better on any "
            "number of cores. GREEDY is within about one percent of WHAM, so all policies are run on the "
            "same jobs and the differences are estimated directly."
        ),
        figures=(_figure(known, curves, differences),),
        tables=(
            costs_table("others", "Costs over n", curves.values(), known["bound"]),
            _differences_table(cores, curves["wham"], differences),
            _limits_table(known, curves, differences),
        ),
        verdicts=(
            _same_limit(known),
            _wham_converges(known, curves["wham"]),
            *(_stays_above(policy, known, cores, differences[policy]) for policy in RIVALS),
            *(_better(policy, cores, differences[policy]) for policy in RIVALS),
            ev.agreement("Simulated costs agree with those of the exact Markov chains", cases),
        ),
        remarks=_remarks(values),
    )


def _remarks(values: Values) -> tuple[str, ...]:
    known = values["limits"]
    ratios = (f"{v} {known[f'greedy:weight={k}']['cost'] / known['bound']:.4f}" for k, v in VARIANTS.items())
    crowded = max(values[f"exact-{policy}-16"]["overload"] for policy in POLICIES)
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


def _curve(policy: str, cores: tuple[int, ...], values: Values) -> Curve:
    results = tuple(values[f"compared-{n}"]["results"][policy] for n in cores)
    exact = (values.get(f"exact-{policy}-{n}") for n in cores)
    name, colour = POLICIES[policy]
    costs = tuple(ev.estimate(result["cost"]) for result in results)
    return Curve(name, cores, costs, results, tuple(e["cost"] if e else nan for e in exact), colour)


def _differences(policy: str, cores: tuple[int, ...], values: Values) -> tuple[Estimate, ...]:
    return tuple(ev.estimate(values[f"compared-{n}"]["differences"][policy]) for n in cores)


def _same_limit(known: Any) -> Verdict:
    lowest, cost = known["bound"], known["wham"]["cost"]
    ratios = {POLICIES[p][0]: known[p]["cost"] / lowest for p in RIVALS}
    told = ", ".join(f"{name} {ratio:.6f}" for name, ratio in ratios.items())
    return Verdict(
        "In the mean-field limit WHAM costs V*, EQUI and GREEDY cost more",
        abs(cost / lowest - 1.0) < 1e-9 and all(ratio > 1.0 + 1e-9 for ratio in ratios.values()),
        f"V* = {lowest:.10f}, WHAM's limit {cost:.10f}; limits over V*: {told}",
    )


def _wham_converges(known: Any, wham: Curve) -> Verdict:
    found, points = ev.limit(wham.cores, wham.simulated, SETTLED)
    note = f"{points} points; {wham.simulated[-1]} on {wham.cores[-1]} cores"
    return ev.tends_to("Simulated WHAM tends to V*", found, known["bound"], PRECISE, note)


def _stays_above(policy: str, known: Any, cores: tuple[int, ...], differences: Any) -> Verdict:
    """The limit of the paired difference must be the mean field's, and not 0."""
    aim = known[policy]["cost"] - known["wham"]["cost"]
    found, points = ev.limit(cores, differences, SETTLED)
    ratio = 1.0 + found.mean / known["bound"]
    note = (
        f"{points} points; limit ratio {ratio:.5f}, in theory {known[policy]['cost'] / known['bound']:.5f}; "
        f"difference on {cores[-1]} cores {differences[-1]}"
    )
    statement = f"Simulated {POLICIES[policy][0]} stays above WHAM by its mean-field limit"
    verdict = ev.tends_to(statement, found, aim, PRECISE_DIFFERENCE, note)
    holds = verdict.holds and aim > 0.0 and found.low > 0.0
    return Verdict(statement, holds, verdict.measured)


def _better(policy: str, cores: tuple[int, ...], differences: Any) -> Verdict:
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
    statement = f"WHAM is better than {POLICIES[policy][0]} at every n"
    return Verdict(statement, False if worse else None if open_ else True, text)


def _figure(known: Any, curves: dict[str, Curve], differences: Any) -> Figure:
    wham = curves["wham"]
    n = wham.x
    costs = [curve.series("both") for curve in curves.values()]
    costs += [
        Series(f"{POLICIES[p][0]}, limit" if p in RIVALS else "V*, the lower bound (WHAM's limit)", n,
               (known[p]["cost"],) * len(n), style="dashed", colour=POLICIES[p][1] if p in RIVALS else 6)
        for p in POLICIES
    ]  # fmt: skip
    above = [
        drawn(POLICIES[p][0], n, _relative(differences[p], wham), "both", POLICIES[p][1]) for p in RIVALS
    ]
    above += [
        Series(f"{POLICIES[p][0]}, refined mean field", n, _predicted(p, known, n), style="dotted",
               colour=POLICIES[p][1])
        for p in RIVALS
    ]  # fmt: skip
    return Figure(
        "others",
        "WHAM, EQUI and GREEDY",
        "First: mean holding cost per job over the number of cores n at load 0.25, simulated with 95 % "
        "intervals; dashed lines are the mean-field limits. Second: by how much of WHAM's cost the rival "
        "costs more, from paired differences on the same jobs; dotted lines are what the refined mean field "
        "predicts for many cores.",
        (
            Panel(Axis("cores n", "log"), Axis("cost", "log"), tuple(costs)),
            Panel(Axis("cores n", "log"), Axis("cost / cost of WHAM − 1", "log"), tuple(above)),
        ),
    )


def _relative(differences: Any, wham: Curve) -> list[Estimate]:
    return [
        Estimate(d.mean / w.mean, d.low / w.mean, d.high / w.mean) if d.low > 0.0 else Estimate()
        for d, w in zip(differences, wham.simulated, strict=True)
    ]


def _predicted(policy: str, known: Any, n: tuple[float, ...]) -> tuple[float, ...]:
    """The refined mean field's ratio to WHAM, where it makes sense: from 64 cores on."""
    costs = [[known[p]["cost"] + known[p]["coefficient"] / x for x in n] for p in (policy, "wham")]
    return tuple(theirs / ours - 1.0 if x >= 64 else nan for x, theirs, ours in zip(n, *costs, strict=True))


def _differences_table(cores: tuple[int, ...], wham: Curve, differences: Any) -> Table:
    columns: dict[str, tuple[Any, ...]] = {"cores": cores}
    for policy, found in differences.items():
        name = POLICIES[policy][0]
        columns |= {
            f"{name} − WHAM": tuple(d.mean for d in found),
            f"{name} − WHAM low": tuple(map(low, found)),
            f"{name} − WHAM high": tuple(map(high, found)),
            f"{name} − WHAM, share of WHAM": tuple(
                d.mean / w.mean for d, w in zip(found, wham.simulated, strict=True)
            ),
        }
    return Table("others-differences", "Paired differences of cost (95 %)", columns)


def _limits_table(known: Any, curves: dict[str, Curve], differences: Any) -> Table:
    cores = curves["wham"].cores
    costs = [ev.limit(cores, curves[p].simulated, SETTLED)[0] for p in POLICIES]
    beyond = [ev.limit(cores, differences[p], SETTLED)[0] if p in RIVALS else Estimate() for p in POLICIES]
    columns = {
        "policy": tuple(name for name, _ in POLICIES.values()),
        "mean-field limit": tuple(known[p]["cost"] for p in POLICIES),
        "over V*": tuple(known[p]["cost"] / known["bound"] for p in POLICIES),
        "1/n coefficient": tuple(known[p]["coefficient"] for p in POLICIES),
        "extrapolated": tuple(e.mean for e in costs),
        "extrapolated low": tuple(map(low, costs)),
        "extrapolated high": tuple(map(high, costs)),
        "extrapolated − WHAM": tuple(e.mean for e in beyond),
        "extrapolated − WHAM low": tuple(map(low, beyond)),
        "extrapolated − WHAM high": tuple(map(high, beyond)),
    }
    return Table("others-limits", "Limits for many cores (99.9 %)", columns)
