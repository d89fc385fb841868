"""What the cells of e12_robustness show: figures, tables and verdicts."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e12_robustness.cells import (
    ARRIVAL_CORES,
    BLIND,
    CORES,
    ERROR,
    FACTORS,
    LOADS,
    SCVS,
    SIMULATED_FACTORS,
    SIZE_CORES,
    SIZES,
    WHOLE,
    loads_of,
    misled_key,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns
from malleable.paper.experiments.shared.comparisons import Compared
from malleable.paper.experiments.shared.curves import positive
from malleable.paper.experiments.shared.policies import POLICIES, RIVALS
from malleable.paper.simulation_cells import PAPERS
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.paper.contracts import Values

Small = tuple[str, str, Compared, Estimate]
"""Kind of trouble, setting, cell, cost over WHAM's less 1."""
TROUBLES = {"wrong": "wrong speedups", "whole": "whole cores", "unknown": "unknown sizes"}
CHEAP = 0.02
"""Share of WHAM's cost that wrong speedups, or whole cores, may cost to count as cheap."""
NEAR = 0.005
"""Share by which the refined mean field may miss."""
CHOICES = {
    "n": f"{CORES} cores; {ARRIVAL_CORES} for arrivals, {', '.join(map(str, SIZE_CORES))} for sizes",
    "loads": ", ".join(map(str, LOADS)),
    "arrivals": (
        "independent renewal processes, one per class: constant intervals (SCV 0), Erlang of two stages "
        "(0.5), exponential (1), hyperexponential with balanced means (4)"
    ),
    "sizes": (
        "lognormal of SCV 4; Pareto of shape 1.5 cut off at 1000 times its least value; means as in the paper"
    ),
    "wrong speedups": (
        "WHAM shares out cores with p₁, p₂ (power laws) and q₃ (Amdahl) each 20 % too small, right, or 20 % "
        "too large; jobs run at their true speeds"
    ),
    "unknown sizes": (
        "with N ≥ n the order is by c/E[remaining size | work done so far] instead of c/x, asked again at "
        "every arrival and departure; ties go to the earlier arrival"
    ),
    "run length": "a fixed number of jobs for each question, more at high load",
}
REMARKS = (
    (
        "V* knows neither fluctuations nor queues. On 64 cores all policies are far above it at both ends: "
        "at low load few jobs are there to share the cores, at high load there are queues."
    ),
    (
        "V* depends on sizes only through their means. For sizes without phases there is no mean-field "
        "equation here, so that the limit is extrapolated from simulations."
    ),
    (
        "What wrong speedups cost depends on how they are wrong: if all look better, or all worse, than they "
        "are, the price adjusts, and the error costs less than when some look better and others worse. On "
        "few cores an error may even help a little: WHAM is optimal for many."
    ),
    (
        "While jobs do not outnumber cores, WHAM looks at no sizes. Not knowing them matters at high load on "
        "few cores only."
    ),
)


def findings(effort: Effort, values: Values) -> Findings:
    """All settings in figures and tables, with verdicts on each kind of trouble."""
    pairs = [
        *((f"load {load:g}", Compared(values[f"load-{load}"])) for load in loads_of(effort)),
        *((f"arrivals, SCV {scv:g}", Compared(values[f"arrivals-{scv}"])) for scv in scvs(values)),
        *((f"{name}, n = {n}", found) for name, n, found in sized(values)),
    ]
    small = troubles(values)
    return Findings(
        title="How robust is WHAM?",
        source="beyond the paper",
        statement=(
            "The paper's figures show one workload at one load, with Poisson arrivals, phase-type sizes and "
            "exactly known speedups. Here each of these is changed in turn: loads from nearly idle to nearly "
            "full, regular and bursty arrivals, heavy-tailed sizes, speedups that WHAM gets wrong, whole "
            "cores only, and jobs of unknown size. All costs are compared on the same jobs."
        ),
        figures=(
            loads_figure(loads_of(effort), values),
            settings_figure(pairs[len(loads_of(effort)) :]),
            small_figure(small),
        ),
        tables=(pairs_table(pairs), arrivals_table(values), small_table(small), misled_table(values)),
        verdicts=(
            *(
                wham_is_better(f"WHAM is better than {POLICIES[p].name} in every setting", p, pairs)
                for p in RIVALS
            ),
            predicted_verdict(values),
            *sizes_verdicts(values),
            costs_little(f"Speedups wrong by {ERROR:.0%} cost at most {CHEAP:.0%}", of_kind("wrong", small)),
            limits_verdict(values),
            costs_little(f"Whole cores cost at most {CHEAP:.0%}", of_kind("whole", small)),
            blind_verdict(of_kind("unknown", small)),
        ),
        remarks=REMARKS,
    )


def scvs(values: Values) -> list[float]:
    """Variabilities of arrivals that were simulated."""
    return [scv for scv in SCVS if f"arrivals-{scv}" in values]


def troubles(values: Values) -> list[Small]:
    """The settings in which WHAM is compared with itself."""
    made: list[Small] = []
    for f in SIMULATED_FACTORS:
        if misled_key(f) in values:
            found = Compared(values[misled_key(f)])
            made.append(("wrong", named(f), found, found.share("misled")))
    for kind, key, policy, settings in (
        ("whole", "whole", "wham-integer", WHOLE),
        ("unknown", "blind", "blind", BLIND),
    ):
        for n, load in settings:
            if f"{key}-{n}-{load}" in values:
                found = Compared(values[f"{key}-{n}-{load}"])
                made.append((kind, f"n = {n}, load {load:g}", found, found.share(policy)))
    return made


def named(factors: Sequence[float]) -> str:
    """Which parameters are believed too large (↑) or too small (↓)."""
    parts = zip(("p₁", "p₂", "q₃"), factors, strict=True)
    return " ".join(f"{name}{'↑' if f > 1.0 else '↓'}" for name, f in parts if f != 1.0)


def of_kind(kind: str, small: Iterable[Small]) -> list[Small]:
    """Those rows that are about one kind of trouble."""
    return [row for row in small if row[0] == kind]


def loads_figure(loads: Sequence[float], values: Values) -> Figure:
    """The gap to the bound, and the rivals over WHAM, over the load."""
    found = [Compared(values[f"load-{load}"]) for load in loads]
    gaps, apart = [], []
    for policy in PAPERS:
        name, colour = POLICIES[policy]
        above = [one.cost(policy).over(one.result(policy)["bound"]).shifted(-1.0) for one in found]
        gaps.append(Series.of(name, loads, positive(above), "both", colour))
        if policy in RIVALS:
            apart.append(Series.of(name, loads, [one.share(policy) for one in found], "both", colour))
    zero = Series("WHAM", (loads[0], loads[-1]), (0.0, 0.0), style="dashed", colour=0)
    return Figure(
        "robustness-loads",
        "From nearly idle to nearly full",
        f"First: the share by which the cost exceeds V* on {CORES} cores over the load. Second: what the "
        "rivals cost more than WHAM on the same jobs. 95 % intervals.",
        (
            Panel(Axis("load"), Axis("cost / V* − 1", "log"), tuple(gaps)),
            Panel(Axis("load"), Axis("cost / cost of WHAM − 1"), (*apart, zero)),
        ),
    )


def settings_figure(pairs: list[tuple[str, Compared]]) -> Figure:
    """The rivals over WHAM for other arrivals and sizes."""
    names = tuple(name for name, _ in pairs)
    x = tuple(map(float, range(len(names))))
    series = tuple(
        Series.of(POLICIES[p].name, x, [found.share(p) for _, found in pairs], "points", POLICIES[p].colour)
        for p in RIVALS
    )
    panel = Panel(Axis("", categories=names), Axis("cost / cost of WHAM − 1", low=0.0), series)
    return Figure(
        "robustness-settings",
        "Other arrivals, other sizes",
        "What the rivals cost more than WHAM on the same jobs at load 0.25, with 95 % intervals: arrivals "
        "from regular (SCV 0) to bursty (SCV 4), then heavy-tailed sizes.",
        (panel,),
    )


def small_figure(small: list[Small]) -> Figure:
    """WHAM in trouble over WHAM without, one panel per kind."""
    panels = []
    for i, (kind, title) in enumerate(TROUBLES.items()):
        rows = of_kind(kind, small)
        x = tuple(map(float, range(len(rows))))
        series = (Series.of(title, x, [d for *_, d in rows], "points", i),)
        names = tuple(name for _, name, _, _ in rows)
        panels.append(Panel(Axis("", categories=names), Axis("cost / cost of WHAM − 1"), series, title=title))
    return Figure(
        "robustness-misled",
        "What WHAM loses when it is told wrong things",
        "Cost over that of undisturbed WHAM, less 1, on the same jobs, with 95 % intervals. First: "
        f"parameters of the speedups believed 20 % too large (↑) or too small (↓), on {CORES} cores at load "
        "0.25. Second: whole cores only. Third: no job sizes.",
        tuple(panels),
    )


def pairs_table(pairs: list[tuple[str, Compared]]) -> Table:
    """All settings in which WHAM meets its rivals."""
    rows = [(name, found, policy) for name, found in pairs for policy in PAPERS]
    results = [found.result(policy) for _, found, policy in rows]
    costs = [found.cost(policy) for _, found, policy in rows]
    apart = [found.share(policy) for _, found, policy in rows]
    columns: dict[str, tuple[Any, ...]] = {
        "setting": tuple(name for name, *_ in rows),
        "policy": tuple(POLICIES[policy].name for *_, policy in rows),
        **interval_columns("cost", costs),
        "V*": tuple(r["bound"] for r in results),
        "cost / V* − 1": tuple(r["cost"]["mean"] / r["bound"] - 1.0 for r in results),
        **interval_columns("over WHAM", apart, "over WHAM low", "over WHAM high"),
        "time with N > n": tuple(r["overload"] for r in results),
        "stable": tuple(r["stable"] for r in results),
        "jobs simulated": tuple(r["jobs"] for r in results),
    }
    return Table("robustness", "Settings, all paired with WHAM (95 %)", columns)


def arrivals_table(values: Values) -> Table:
    """Simulated and predicted costs over the variability of arrivals."""
    rows = [(scv, policy) for scv in scvs(values) for policy in PAPERS]
    told = [values[f"predicted-{scv}"][policy] for scv, policy in rows]
    columns: dict[str, tuple[Any, ...]] = {
        "SCV": tuple(scv for scv, _ in rows),
        "policy": tuple(POLICIES[policy].name for _, policy in rows),
        **interval_columns("simulated", (Compared(values[f"arrivals-{scv}"]).cost(p) for scv, p in rows)),
        "refined mean field": tuple(p["cost"] for p in told),
        "limit": tuple(p["limit"] for p in told),
    }
    return Table(
        "robustness-arrivals", f"Arrivals on {ARRIVAL_CORES} cores, simulated and predicted", columns
    )


def small_table(small: list[Small]) -> Table:
    """All settings in which WHAM meets itself."""
    columns: dict[str, tuple[Any, ...]] = {
        "trouble": tuple(TROUBLES[kind] for kind, *_ in small),
        "setting": tuple(name for _, name, *_ in small),
        "cost of WHAM": tuple(found.cost("wham").mean for *_, found, _ in small),
        **interval_columns("cost / cost of WHAM − 1", (d for *_, d in small)),
    }
    return Table("robustness-misled", "WHAM against itself (95 %)", columns)


def misled_table(values: Values) -> Table:
    """Limits for all combinations of wrong parameters."""
    known = values["limits"]
    columns = {
        "factor on p₁": tuple(f[0] for f in FACTORS),
        "factor on p₂": tuple(f[1] for f in FACTORS),
        "factor on q₃": tuple(f[2] for f in FACTORS),
        "limit / V* − 1": tuple(known[misled_key(f)] / known["bound"] - 1.0 for f in FACTORS),
    }
    return Table("robustness-limits", "Wrong speedups in the limit of many cores", columns, shown=False)


def sized(values: Values) -> list[tuple[str, int, Compared]]:
    """Comparisons with other sizes: law, number of cores, values."""
    return [
        (name, n, Compared(values[f"sizes-{i}-{n}"]))
        for i, name in enumerate(SIZES)
        for n in SIZE_CORES
        if f"sizes-{i}-{n}" in values
    ]


def wham_is_better(statement: str, policy: str, pairs: list[tuple[str, Compared]]) -> Verdict:
    """Decided in every setting by the interval of the paired difference."""
    apart = {name: found.share(policy) for name, found in pairs}
    worse = [name for name, d in apart.items() if d.high < 0.0]
    open_ = [name for name, d in apart.items() if d.low <= 0.0 <= d.high]
    least = min(apart, key=lambda name: apart[name].mean)
    most = max(apart, key=lambda name: apart[name].mean)
    text = (
        f"better in {len(apart) - len(worse) - len(open_)} of {len(apart)} settings; it costs "
        f"{apart[least].mean:.2%} ({least}) to {apart[most].mean:.2%} ({most}) more than WHAM"
    )
    text += "".join(f"; {w}: {', '.join(names)}" for w, names in (("worse", worse), ("open", open_)) if names)
    return Verdict(statement, False if worse else None if open_ else True, text)


def predicted_verdict(values: Values) -> Verdict:
    """Whether the refined mean field gives WHAM's cost for every variability of arrivals."""
    off, told = [], []
    for scv in scvs(values):
        found, aim = Compared(values[f"arrivals-{scv}"]), values[f"predicted-{scv}"]["wham"]["cost"]
        wide = ev.widened(found.cost("wham"), found.result("wham"), ev.SURE)
        off.append(max(abs(wide.mean - aim) - wide.half_width, 0.0) / aim)
        told.append(f"SCV {scv:g}: {wide.mean:.5f} ± {wide.half_width:.5f}, predicted {aim:.5f}")
    known = all(isfinite(v) for v in off)
    text = "; ".join(told)
    return Verdict(
        "The refined mean field predicts what bursty arrivals cost", max(off) <= NEAR if known else None, text
    )


def sizes_verdicts(values: Values) -> list[Verdict]:
    """Whether WHAM's cost tends to V* for every law of sizes."""
    made = []
    for name in SIZES:
        mine = [(n, found.cost("wham")) for label, n, found in sized(values) if label == name]
        limit, points = ev.limit([n for n, _ in mine], [cost for _, cost in mine], 0)
        lowest = values["limits"]["bound"]
        n, last = mine[-1]
        ratio = f"{last.mean / lowest:.4f} ± {last.half_width / lowest:.4f}"
        note = f"{points} points; cost over V* {ratio} on {n} cores"
        made.append(ev.tends_to(f"WHAM's cost tends to V* with {name} sizes", limit, lowest, 0.02, note))
    return made


def costs_little(statement: str, rows: list[Small]) -> Verdict:
    """Whether the whole interval lies below the limit in every setting."""
    worst = max(rows, key=lambda row: row[3].high)
    text = f"{len(rows)} settings, most in “{worst[1]}”: {worst[3].mean:+.2%} ± {worst[3].half_width:.2%}"
    above = any(row[3].low > CHEAP for row in rows)
    return Verdict(statement, False if above else True if worst[3].high <= CHEAP else None, text)


def limits_verdict(values: Values) -> Verdict:
    """Whether wrong speedups cost little in the mean field."""
    known, lowest = values["limits"], values["limits"]["bound"]
    ratios = {f: known[misled_key(f)] / lowest - 1.0 for f in FACTORS}
    worst = max(ratios, key=lambda f: ratios[f])
    inside = all(-1e-9 <= v <= CHEAP for v in ratios.values())
    text = f"{len(ratios)} combinations, {min(ratios.values()):.2%} to {ratios[worst]:.2%} ({named(worst)})"
    return Verdict(f"Nor do they cost more than {CHEAP:.0%} in the limit of many cores", inside, text)


def blind_verdict(rows: list[Small]) -> Verdict:
    """Whether knowing sizes ever hurts; how much it helps is for the table."""
    told = "; ".join(f"{name}: {d.mean:+.2%} ± {d.half_width:.2%}" for _, name, _, d in rows)
    hurts = any(d.high < 0.0 for *_, d in rows)
    helps = any(d.low > 0.0 for *_, d in rows)
    return Verdict(
        "Not knowing job sizes costs something at high load", False if hurts else helps or None, told
    )
