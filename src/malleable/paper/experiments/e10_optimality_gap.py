"""How far from the optimum? Exact costs of policies beside the best policy that is blind to sizes."""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any

from malleable import catalog
from malleable.paper.contracts import Cell, Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments import _optimality_figures as shown
from malleable.paper.experiments._optimality import choices, gaps
from malleable.paper.experiments._optimality_figures import (
    DRAWN,
    EXACT,
    POLICIES,
    TRUNCATED,
    WORKLOADS,
    Point,
)
from malleable.paper.simulation_cells import compared

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.paper.contracts import Values

FEW = (2, 4, 8, 16)
LOADS = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9)
MANY = {0.25: (64, 256, 1024, 4096), 0.4: (64, 256), 0.55: (64, 256), 0.7: (64,), 0.8: (64,), 0.9: (64,)}
"""More cores; at low load few jobs are present, so the chain stays small."""
MAP = ("sizes", 8, 0.55, 10)
"""Workload, cores, load and most jobs of a class of the map of decisions."""
SIMULATED = (("sizes", 8, 0.55), ("sizes", 8, 0.9), ("two", 4, 0.9))
SEED = 10
CLOSE = 0.01
"""A gap that counts as small."""
CHOICES = {
    "sizes": "exponential with the paper's means, so that class counts say all a size-blind policy can know",
    "short and long": "two classes alike but for mean size (0.1 and 1), k^0.8, c = 1, each half of the load",
    "n, ρ": f"n = {', '.join(map(str, FEW))}, more at low load; ρ = {', '.join(map(str, LOADS))}",
    "widths": "any real number of cores; below one core a job shares it in time; whole cores apart",
    "overload": "in the chain WHAM orders by c/E[X], GREEDY with equal weights shares the cores in time",
    "truncation": "1e-6 of the optimum's arrivals find the chain full; up to 1e-4 with three classes",
    "lost jobs": "charged what it would cost to let them in, by the value function of the overloaded system",
}


def cells(effort: Effort) -> list[Cell]:
    """Exact costs by workload, n and load; one map of decisions; simulations of the real policies."""
    made = [_gap_cell(*setting, effort) for setting in _settings(effort)]
    name, n, load, most = MAP
    made.append(Cell("map", choices, {**_setting(name, n, load), "most": most}, 0.5))
    jobs = effort.jobs // 8
    for name, n, load in _simulated(effort):
        policies = ["wham", "equi", *([] if effort.quick else ["greedy", *_discounted()])]
        run = {**_setting(name, n, load), "policies": policies, "jobs": jobs, "seed": SEED}
        made.append(Cell(_key("simulated", name, n, load), compared, run, 2.0))
    return made


def _settings(effort: Effort) -> list[tuple[str, int, float]]:
    """Workload, cores and load of every exact cell."""
    if effort.quick:
        small = [
            ("two", 8, 0.55),
            ("sizes", 2, 0.55),
            ("sizes", 8, 0.55),
            ("two", 4, 0.9),
            ("three", 4, 0.25),
        ]
        return [*small, *(("sizes", n, 0.25) for n in (8, 64, 256, 1024, 4096))]
    found = [("sizes", n, load) for load in LOADS for n in (*FEW, *MANY[load])]
    found += [("two", n, load) for load in DRAWN for n in (*FEW, *MANY[load]) if n <= 256 and load * n < 50]
    found += [("three", n, load) for load in (0.25, 0.55, 0.7) for n in (2, 4, 8, 12)]
    if effort.name == "full":
        found += [("sizes", 256, 0.7), ("sizes", 256, 0.8), ("sizes", 256, 0.9), ("two", 256, 0.55)]
        found += [("two", 64, 0.9), ("two", 256, 0.7), *(("three", n, 0.8) for n in (2, 4, 8, 12))]
    return found


def _simulated(effort: Effort) -> tuple[tuple[str, int, float], ...]:
    return SIMULATED[-1:] if effort.quick else SIMULATED


def _discounted() -> list[str]:
    """The discounted policy, if this version has it."""
    return ["wham-discounted"] if "wham_discounted" in catalog.kinds("policies") else []


def _setting(name: str, n: int, load: float) -> dict[str, Any]:
    return {"workload": WORKLOADS[name][1], "cores": n, "load": load}


def _gap_cell(name: str, n: int, load: float, effort: Effort) -> Cell:
    few = n <= 16
    # Two classes that differ in size alone tie on whole cores, so that counts do not decide.
    whole = ["wham-integer"] if few and name != "sizes" and not effort.quick else []
    policies = ["wham", "equi", "greedy", *(["greedy:weight=cmu"] if few and name != "three" else [])]
    states = 7_000 if name == "three" and effort.name != "full" else 40_000
    arguments = {**_setting(name, n, load), "policies": policies, "whole": whole, "max_states": states}
    weight = 0.1 + 3.0 * (name == "three") * load + 1.5 * (load >= 0.7) + n / 4000
    return Cell(_key("gap", name, n, load), gaps, arguments, weight)


def _key(kind: str, name: str, n: int, load: float) -> str:
    return f"{kind}-{name}-{n}-{load:g}"


def findings(effort: Effort, values: Values) -> Findings:
    """Gaps over n and load, the map, and what they say."""
    points = [Point(*s, values[_key("gap", *s)]) for s in _settings(effort)]
    points = [point for point in points if not failed(point.value)]
    points.sort(key=lambda p: (p.name, p.load, p.cores))
    figures = [shown.over_cores(points), shown.by_policy(points)]
    figures += [] if effort.quick else [shown.heat(points)]
    return Findings(
        title="How far is WHAM from the optimum?",
        source="beyond the paper",
        statement=(
            "WHAM's cost tends to the lower bound V* on many cores. On few cores V* is out of reach for "
            "everybody, so the distance from V* does not tell how good a policy is. With Poisson arrivals "
            "and exponential sizes the best policy that is blind to sizes can be computed (a Markov decision "
            "process), and the distance from it can be measured. Where does WHAM lose, and how much?"
        ),
        figures=(*figures, shown.decisions(values["map"])),
        tables=(shown.table(points), _simulation_table(effort, values, points)),
        verdicts=(
            _sandwich(points),
            _closed(points),
            _small_on_the_paper(points),
            *(_falls(points, name) for name in ("two", "sizes")),
            _best_rule(points),
            _favours_short(values["map"]),
            _sizes_matter(effort, values, points),
            _agrees(effort, values, points),
        ),
        remarks=(
            (
                "The optimum is over policies that do not know sizes. WHAM knows them, and uses them when "
                "jobs outnumber cores; in the chain it orders by c/E[X] instead. Simulated WHAM is the real "
                "one, and may cost less than the optimum."
            ),
            (
                "WHAM gives short and long jobs of one speedup the same cores as long as everybody has one. "
                "The optimum gives the short ones more: they leave sooner and free their cores. On very many "
                "cores the difference vanishes."
            ),
            (
                "A policy under which more than one arrival in ten thousand finds the chain full is "
                "unstable, or needs a longer chain; it has no entry. GREEDY with w = cμ starves the class of "
                "lower cμ at high load."
            ),
        ),
    )


def _runs(effort: Effort, values: Values, points: list[Point]) -> Iterable[tuple[Point, str, Any]]:
    """Every simulated policy with its exact setting."""
    known = {(p.name, p.cores, p.load): p for p in points}
    for setting in _simulated(effort):
        value = values[_key("simulated", *setting)]
        if setting in known and not failed(value):
            for policy, result in value["results"].items():
                yield known[setting], policy, result


def _simulation_table(effort: Effort, values: Values, points: list[Point]) -> Table:
    rows = list(_runs(effort, values, points))
    costs = [ev.estimate(result["cost"]) for _, _, result in rows]
    best = [p.value["real"]["optimum"] for p, _, _ in rows]
    return Table(
        "optimality-simulated",
        "Simulated costs of the policies themselves",
        {
            "workload": tuple(WORKLOADS[p.name][0] for p, _, _ in rows),
            "cores": tuple(p.cores for p, _, _ in rows),
            "load": tuple(p.load for p, _, _ in rows),
            "policy": tuple(POLICIES[policy][0] for _, policy, _ in rows),
            "cost": tuple(c.mean for c in costs),
            "low": tuple(c.low for c in costs),
            "high": tuple(c.high for c in costs),
            "size-blind optimum": tuple(best),
            "above the optimum": tuple(c.mean / b - 1.0 for c, b in zip(costs, best, strict=True)),
        },
    )


def _sandwich(points: list[Point]) -> Verdict:
    """V* below the optimum, the optimum below everybody."""
    below = [p.value["real"]["low"] / p.value["bound"] for p in points]
    above = [gap for p in points for policy in POLICIES if not isnan(gap := p.gap(policy))]
    return Verdict(
        "The optimum lies between the lower bound V* and the cost of every policy",
        bool(points) and min(below) >= 1.0 - EXACT and min(above) >= -EXACT,
        f"{len(points)} settings: optimum/V* from {min(below):.4g} to {max(below):.4g}, "
        f"{len(above)} policy costs at least {min(above):.2e} above the optimum",
    )


def _closed(points: list[Point]) -> Verdict:
    """Whether the optima are what they claim to be."""
    kinds = [p.value[kind] for p in points for kind in ("real", "whole") if kind in p.value]
    width = max(k["high"] / k["low"] - 1.0 for k in kinds)
    lost = max(k["lost"] for k in kinds)
    return Verdict(
        f"Every optimum is known to eight digits, on a chain that loses at most {TRUNCATED:.2%} of arrivals",
        width <= 1e-8 and lost <= TRUNCATED,
        f"widest bracket {width:.1e}, most arrivals lost {lost:.1e}",
    )


def _worst(points: Iterable[Point]) -> Point:
    return max(points, key=lambda p: p.gap("wham"))


def _small_on_the_paper(points: list[Point]) -> Verdict:
    worst = _worst(p for p in points if p.name != "sizes")
    return Verdict(
        f"On the paper's classes, with exponential sizes, WHAM is within {CLOSE:.0%} of the optimum",
        worst.gap("wham") <= CLOSE,
        f"largest gap {worst.gap('wham'):.3%} ({worst.place}); with short and long jobs "
        f"{(far := _worst(shown.among(points, 'sizes'))).gap('wham'):.2%} ({far.place})",
    )


def _falls(points: list[Point], name: str) -> Verdict:
    """After its peak the gap must fall to the last n; where it still rises there is nothing to decide."""
    decided, texts = [], []
    for load in DRAWN:
        chosen = shown.among(points, name, load)
        if len(chosen) < 3:
            continue
        gap = [p.gap("wham") for p in chosen]
        peak = gap.index(max(gap))
        fell = all(b <= a + EXACT for a, b in pairwise(gap[peak:]))
        highest, last = chosen[peak].cores, chosen[-1].cores
        if highest < last:
            decided.append(fell)
            texts.append(f"ρ = {load:g}: peak {gap[peak]:.3%} at n = {highest}, {gap[-1]:.3%} at n = {last}")
        else:
            texts.append(f"ρ = {load:g}: still rising at n = {last}, {gap[-1]:.3%}")
    statement = f"WHAM's gap to the optimum falls with n once it has peaked: {WORKLOADS[name][0]}"
    return Verdict(statement, all(decided) if decided else None, "; ".join(texts) or "too few points")


def _best_rule(points: list[Point]) -> Verdict:
    rivals = ("equi", "greedy", "greedy:weight=cmu")
    beaten = [(p.gap(r) - p.gap("wham"), p, r) for p in points for r in rivals if not isnan(p.gap(r))]
    lost = [one for one in beaten if one[0] < -EXACT]
    text = f"beaten in {len({id(p) for _, p, _ in lost})} of {len(points)} settings"
    if lost:
        by, where, rival = min(lost, key=lambda one: one[0])
        text += f", most by {POLICIES[rival][0]} ({where.place}): {where.gap(rival):.2%} against "
        text += f"{where.gap('wham'):.2%} above the optimum, {-by:.2%} of it apart"
    return Verdict("No other class rule costs less than WHAM, at any n and load", not lost, text)


def _favours_short(value: Any) -> Verdict:
    """What the optimum does where WHAM, while everybody can have a core, does not look at sizes."""
    statement = (
        "With short and long jobs present the optimum never gives the short ones fewer cores than WHAM"
    )
    cores, more, both = value["cores"], shown.excess(value), range(1, len(value["wham"]))
    few = [(a, b) for b in both for a in both if a + b <= cores]
    waits = sum(value["optimum"][b][a] > cores - 1e-6 for a, b in few)
    least, most = (end(more[b][a] for b in both for a in both) for end in (min, max))
    text = (
        f"between {least:.2f} and {most:.2f} cores more; in {waits} of the {len(few)} states with cores for "
    )
    return Verdict(statement, least >= -1e-6, text + "all, long jobs get none")


def _sizes_matter(effort: Effort, values: Values, points: list[Point]) -> Verdict:
    """Simulated WHAM against the optimum that does not know sizes."""
    statement = "Knowing sizes in overload, the real WHAM can cost less than the best size-blind policy"
    shares = []
    for point, policy, result in _runs(effort, values, points):
        if policy == "wham":
            cost = ev.widened(ev.estimate(result["cost"]), result, ev.SURE)
            best = point.value["real"]["low"]
            shares.append((cost.high / best - 1.0, cost.mean / best - 1.0, point))
    if not shares:
        return Verdict(statement, None, "WHAM was not simulated")
    high, mean, point = min(shares, key=lambda one: one[0])
    text = f"{point.place}: simulated WHAM {mean:+.2%} against the optimum, at most {high:+.2%} (99.9 %)"
    return Verdict(statement, True if high < 0.0 else None, text)


def _agrees(effort: Effort, values: Values, points: list[Point]) -> Verdict:
    """EQUI needs neither sizes nor the order of arrival: its simulation and its chain are the same system."""
    return ev.agreement(
        "Simulated EQUI costs what the chain says",
        [
            ev.Case(
                point.place,
                ev.estimate(result["cost"]),
                result,
                point.value["real"]["policies"][policy]["cost"],
            )
            for point, policy, result in _runs(effort, values, points)
            if policy == "equi"
        ],
    )
