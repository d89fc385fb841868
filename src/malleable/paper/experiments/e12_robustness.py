"""How much of WHAM's lead survives other loads, arrivals and sizes, wrong speedups, whole cores, no sizes?"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Cell, Effort, Findings, Verdict
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._robustness import (
    ARRIVAL_CORES,
    BLIND,
    CORES,
    ERROR,
    FACTORS,
    POLICIES,
    RIVALS,
    SIMULATED_FACTORS,
    WHOLE,
    Small,
    arrivals_table,
    cost_of,
    loads_figure,
    misled_key,
    misled_table,
    named,
    of_kind,
    pairs_table,
    scvs,
    settings_figure,
    share_of,
    small_figure,
    small_table,
    troubles,
)
from malleable.paper.experiments._settings import SCVS, SIZES, predicted, with_arrivals, with_sizes
from malleable.paper.experiments._wrong_information import misled_limits, misled_runs
from malleable.paper.simulation_cells import compared

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

LOAD = 0.25
LOADS = (0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
QUICK_LOADS = (0.25, 0.9)
SIZE_CORES = (256, 1024, 4096)
QUICK_FACTORS = ((1.2, 0.8, 0.8),)
QUICK_SCVS = (0.0, 4.0)
SEED = 12
JOBS = {
    "quick": {"load": 10_000, "heavy": 20_000, "arrivals": 10_000, "sizes": 10_000, "misled": 10_000,
              "whole": 3_000, "blind": 5_000},
    "normal": {"load": 400_000, "heavy": 2_000_000, "arrivals": 500_000, "sizes": 500_000,
               "misled": 150_000, "whole": 80_000, "blind": 150_000},
    "full": {"load": 10_000_000, "heavy": 100_000_000, "arrivals": 10_000_000, "sizes": 20_000_000,
             "misled": 5_000_000, "whole": 1_000_000, "blind": 3_000_000},
}  # fmt: skip
"""Jobs of the simulations."""
HEAVY = 0.9
"""From this load on runs are longer."""
CHEAP = 0.02
"""Share of WHAM's cost that wrong speedups, or whole cores, may cost to count as cheap."""
NEAR = 0.005
"""Share by which the refined mean field may miss."""

CHOICES = {
    "n": f"{CORES} cores; {ARRIVAL_CORES} for arrivals, {', '.join(map(str, SIZE_CORES))} for sizes",
    "loads": ", ".join(map(str, LOADS)),
    "arrivals": (
        "independent renewal processes, one a class: constant intervals (SCV 0), Erlang of two stages (0.5), "
        "exponential (1), hyperexponential with balanced means (4)"
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


def cells(effort: Effort) -> list[Cell]:
    """One cell a setting; each runs WHAM and what it is compared with on the same jobs."""
    return [*_rival_cells(effort), *_trouble_cells(effort)]


def _rival_cells(effort: Effort) -> list[Cell]:
    """WHAM and its rivals at other loads, with other arrivals, with other sizes."""
    jobs = JOBS[effort.name]
    both = {"policies": list(POLICIES), "load": LOAD}
    made = []
    for load in _loads(effort):
        count = jobs["load" if load < HEAVY else "heavy"]
        run = {**both, "cores": CORES, "load": load, "seed": SEED, "jobs": count}
        made.append(Cell(f"load-{load}", compared, run, 0.4 + count / 1.5e6))
    for scv in QUICK_SCVS if effort.quick else SCVS:
        asked = {**both, "workload": with_arrivals(scv), "cores": ARRIVAL_CORES}
        made.append(Cell(f"predicted-{scv}", predicted, asked, 0.1))
        run = {**asked, "seed": SEED, "jobs": jobs["arrivals"]}
        made.append(Cell(f"arrivals-{scv}", compared, run, 0.4 + jobs["arrivals"] / 1e6))
    for i, name in enumerate(SIZES):
        for n in SIZE_CORES[:1] if effort.quick else SIZE_CORES:
            run = {**both, "workload": with_sizes(name), "cores": n, "seed": SEED}
            count = max(jobs["sizes"], 30 * n)
            made.append(Cell(f"sizes-{i}-{n}", compared, {**run, "jobs": count}, 0.4 + count / 1e6))
    return made


def _trouble_cells(effort: Effort) -> list[Cell]:
    """WHAM with wrong speedups, on whole cores, and without sizes, beside itself."""
    jobs = JOBS[effort.name]
    every = {"cores": 1024, "load": LOAD, "factors": {misled_key(f): list(f) for f in FACTORS}}
    made = [Cell("limits", misled_limits, every, 0.1)]
    for factors in QUICK_FACTORS if effort.quick else SIMULATED_FACTORS:
        run = {"cores": CORES, "load": LOAD, "seed": SEED, "jobs": jobs["misled"]}
        told = {"policies": {"misled": {"factors": list(factors)}}, **run}
        made.append(Cell(misled_key(factors), misled_runs, told, 0.2 + jobs["misled"] / 2e6))
    for n, load in WHOLE[:1] if effort.quick else WHOLE:
        run = {"cores": n, "load": load, "seed": SEED, "jobs": max(jobs["whole"], 30 * n)}
        whole = {"policies": ["wham", "wham-integer"], **run}
        made.append(Cell(f"whole-{n}-{load}", compared, whole, 0.2 + jobs["whole"] / 1e5))
    for n, load in BLIND[:1] if effort.quick else BLIND:
        run = {"cores": n, "load": load, "seed": SEED, "jobs": jobs["blind"]}
        blind = {"policies": {"blind": {}}, **run}
        made.append(Cell(f"blind-{n}-{load}", misled_runs, blind, 0.2 + jobs["blind"] / 2e5))
    return made


def _loads(effort: Effort) -> tuple[float, ...]:
    return QUICK_LOADS if effort.quick else LOADS


def findings(effort: Effort, values: Values) -> Findings:
    """All settings in figures and tables, with verdicts on each kind of trouble."""
    pairs = [
        *((f"load {load:g}", values[f"load-{load}"]) for load in _loads(effort)),
        *((f"arrivals, SCV {scv:g}", values[f"arrivals-{scv}"]) for scv in scvs(values)),
        *((f"{name}, n = {n}", found) for name, n, found in _sized(values)),
    ]
    small = troubles(values)
    return Findings(
        title="How robust is WHAM?",
        source="beyond the paper",
        statement=(
            "The paper's figures show one workload at one load, with Poisson arrivals, phase-type sizes and "
            "exactly known speedups. Here each of these is changed in turn: loads from nearly idle to nearly "
            "full, regular and bursty arrivals, heavy-tailed sizes, speedups that WHAM gets wrong, whole "
            "cores only, and jobs whose sizes nobody knows. All costs are compared on the same jobs."
        ),
        figures=(
            loads_figure(_loads(effort), values),
            settings_figure(pairs[len(_loads(effort)) :]),
            small_figure(small),
        ),
        tables=(pairs_table(pairs), arrivals_table(values), small_table(small), misled_table(values)),
        verdicts=(
            *(_better(f"WHAM is better than {POLICIES[p][0]} in every setting", p, pairs) for p in RIVALS),
            _predicted_verdict(values),
            *_sizes_verdicts(values),
            _cheap(f"Speedups wrong by {ERROR:.0%} cost at most {CHEAP:.0%}", of_kind("wrong", small)),
            _limits_verdict(values),
            _cheap(f"Whole cores cost at most {CHEAP:.0%}", of_kind("whole", small)),
            _blind_verdict(of_kind("unknown", small)),
        ),
        remarks=REMARKS,
    )


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


def _sized(values: Values) -> list[tuple[str, int, Any]]:
    return [
        (name, n, values[f"sizes-{i}-{n}"])
        for i, name in enumerate(SIZES)
        for n in SIZE_CORES
        if f"sizes-{i}-{n}" in values
    ]


def _better(statement: str, policy: str, pairs: list[tuple[str, Any]]) -> Verdict:
    """Decided in every setting by the interval of the paired difference."""
    apart = {name: share_of(found, policy) for name, found in pairs}
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


def _predicted_verdict(values: Values) -> Verdict:
    """Whether the refined mean field gives WHAM's cost for every variability of arrivals."""
    off, told = [], []
    for scv in scvs(values):
        found, aim = values[f"arrivals-{scv}"], values[f"predicted-{scv}"]["wham"]["cost"]
        wide = ev.widened(cost_of(found, "wham"), found["results"]["wham"], ev.SURE)
        off.append(max(abs(wide.mean - aim) - wide.half_width, 0.0) / aim)
        told.append(f"SCV {scv:g}: {wide.mean:.5f} ± {wide.half_width:.5f}, predicted {aim:.5f}")
    known = all(isfinite(v) for v in off)
    text = "; ".join(told)
    return Verdict(
        "The refined mean field predicts what bursty arrivals cost", max(off) <= NEAR if known else None, text
    )


def _sizes_verdicts(values: Values) -> list[Verdict]:
    """Whether WHAM's cost tends to V* for every law of sizes."""
    made = []
    for name in SIZES:
        mine = [(n, cost_of(found, "wham")) for label, n, found in _sized(values) if label == name]
        limit, points = ev.limit([n for n, _ in mine], [cost for _, cost in mine], 0)
        lowest = values["limits"]["bound"]
        n, last = mine[-1]
        ratio = f"{last.mean / lowest:.4f} ± {last.half_width / lowest:.4f}"
        note = f"{points} points; cost over V* {ratio} on {n} cores"
        made.append(ev.tends_to(f"WHAM's cost tends to V* with {name} sizes", limit, lowest, 0.02, note))
    return made


def _cheap(statement: str, rows: list[Small]) -> Verdict:
    """Whether the whole interval lies below the limit in every setting."""
    worst = max(rows, key=lambda row: row[3].high)
    text = f"{len(rows)} settings, most in “{worst[1]}”: {worst[3].mean:+.2%} ± {worst[3].half_width:.2%}"
    above = any(row[3].low > CHEAP for row in rows)
    return Verdict(statement, False if above else True if worst[3].high <= CHEAP else None, text)


def _limits_verdict(values: Values) -> Verdict:
    known, lowest = values["limits"], values["limits"]["bound"]
    ratios = {f: known[misled_key(f)] / lowest - 1.0 for f in FACTORS}
    worst = max(ratios, key=lambda f: ratios[f])
    inside = all(-1e-9 <= v <= CHEAP for v in ratios.values())
    text = f"{len(ratios)} combinations, {min(ratios.values()):.2%} to {ratios[worst]:.2%} ({named(worst)})"
    return Verdict(f"Nor do they cost more than {CHEAP:.0%} in the limit of many cores", inside, text)


def _blind_verdict(rows: list[Small]) -> Verdict:
    """Whether knowing sizes ever hurts; how much it helps is for the table."""
    told = "; ".join(f"{name}: {d.mean:+.2%} ± {d.half_width:.2%}" for _, name, _, d in rows)
    hurts = any(d.high < 0.0 for *_, d in rows)
    helps = any(d.low > 0.0 for *_, d in rows)
    return Verdict(
        "Not knowing job sizes costs something at high load", False if hurts else helps or None, told
    )
