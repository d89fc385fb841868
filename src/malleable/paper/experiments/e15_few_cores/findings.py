"""What the cells of e15_few_cores show: figures, tables and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e15_few_cores.cells import (
    GAP_POLICIES,
    LIMITS,
    ORDERS,
    WORKLOADS_HELD_OUT,
    Where,
    gap_settings,
    limit_settings,
    load_settings,
    order_settings,
    seeds_of,
    study_settings,
)
from malleable.paper.experiments.e15_few_cores.held_out import HELD_OUT, PAIRS, setting
from malleable.paper.experiments.e15_few_cores.systems import (
    BLIND_STUDY,
    DIGITS,
    LAST_DIGIT,
    SIZED_STUDY,
    WORKLOADS,
)
from malleable.paper.experiments.shared.comparisons import (
    NEGLIGIBLE,
    Gain,
    gain,
    gains_table,
    never_worse,
    together,
)
from malleable.paper.experiments.shared.workloads import key_of
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Values

WHAM, IMPROVED, TRUSTING = GAP_POLICIES
SHORT = {"weights": "weights", "sizes": "sizes", "two": "paper", "four": "four"}
"""Names of systems that fit below an axis."""
GAPS = {WHAM: "WHAM", IMPROVED: "wham-improved", TRUSTING: "… with headroom=1"}
"""Policies whose distances from the optimum are drawn, and their names."""
COLOURS = {"weights": 0, "four": 1, "paper": 2}
"""Of systems that are drawn as curves."""
CLOSE = 0.1
"""Per cent above the optimum that count as next to nothing."""
SAME_TERM = {"quick": 0.1, "normal": 0.02, "full": 0.01}
"""How far exact terms, extrapolated from systems of an effort's size, may be from the 1/n coefficients."""
NEAR = 0.02
"""How far from V* the cost on the most cores may be, in normal runs; it falls as 1/n."""
SHARE, UP_TO = 0.8, 0.7
"""Of the gains of the study that must be reached for sure with sizes known, and up to which load."""
CHOICES = {
    "weights": "k^0.5 with cost 0.4 and Amdahl 0.1 with cost 3, equal rates, mean sizes 1",
    "short and long": "two classes alike but for mean size (0.05 and 1), k^0.8, c = 1, each half of the load",
    "four": "k^0.4, k^0.8, Amdahl 0.1 and 0.3; mean sizes 1, 0.6, 1.5, 0.9; costs 0.4, 1, 1.5, 3",
    "held out": (
        f"seeds from {HELD_OUT}: 2 to 6 classes, n = 3 to 64, ρ = 0.3 to 0.95; exponential, hyperexponential "
        "or lognormal sizes"
    ),
    "1/n terms": ", ".join(f"{WORKLOADS[name][0]} at ρ = {load:g}" for name, load in ORDERS.items()),
    "many cores": ", ".join(f"{WORKLOADS[name][0]} at ρ = {load:g}" for name, load in LIMITS.items()),
    "comparisons": "on the same jobs; intervals of the paired differences; 99 % for all of a kind together",
}


def findings(effort: Effort, values: Values) -> Findings:
    """Gaps, terms, gains, limits, and what they say."""
    gaps, terms = gap_points(effort, values), order_points(effort, values)
    held_out = {pair: held_out_gains(effort, pair, values) for pair in ("blind", "sized")}
    limits = limit_points(effort, values)
    loads = {pair: load_points(effort, pair, values) for pair in ("blind", "sized")}
    study = study_gains(effort, values)
    verdicts = [near_optimal(gaps), as_in_the_study(gaps), terms_agree(terms, effort.name)]
    for pair, gains in held_out.items():
        verdicts.append(gains_on_average(pair, gains, stepped_back(effort, pair, values)))
        statement = f"{PAIRS[pair].policy} costs more on none of them by over {NEGLIGIBLE:.2%}"
        verdicts.append(never_worse(statement, gains))
    verdicts.append(gains_of_the_study(study))
    verdicts.append(to_the_bound(limits, far=not effort.quick))
    verdicts.append(stays_stable([point for points in loads.values() for point in points]))
    tables = [gaps_table(gaps)]
    for pair, gains in held_out.items():
        title = f"{PAIRS[pair].policy} relative to {PAIRS[pair].base} on held-out workloads"
        tables.append(gains_table(f"few-cores-held-out-{pair}", title, gains))
    if study:
        title = "wham-fitted:headroom=1 relative to wham-discounted on the systems of the study"
        tables.append(gains_table("few-cores-study", title, study.values()))
    return Findings(
        title="Better than WHAM on few cores",
        source="beyond the paper",
        statement=(
            "WHAM is optimal as the number of cores grows. On 4 to 64 cores, with classes of unequal weight "
            "or size, the best policy that is blind to sizes costs 1 to 14 % less. `wham-improved` is WHAM "
            "after a few steps of policy improvement with a fitted value function; `wham-fitted` improves "
            "`wham-discounted` likewise, for sizes that are known. How near do they come to the optimum, do "
            "they ever lose on workloads that nothing was chosen on, and what becomes of them on many cores "
            "and at high loads?"
        ),
        figures=(
            gaps_figure(gaps),
            terms_figure(terms),
            held_out_figure(held_out),
            limits_figure(limits, loads),
        ),
        tables=tuple(tables),
        verdicts=tuple(verdicts),
        remarks=(
            (
                "The held-out workloads are drawn from seeds that no design run has used. "
                f"{WORKLOADS_HELD_OUT['full'][0]} of each kind are compared with `--full`; fewer otherwise."
            ),
            (
                "Where a trial sees no gain beyond doubt a policy steps back to the one that it improves. "
                "The difference is then 0 by construction, and nothing is simulated."
            ),
            (
                "`wham-fitted` as it is steps back where it would lose if the load were 25 % higher or lower "
                "than told, often at loads above 0.7; `wham-improved` is then fitted to a load between. The "
                "study had no such guard, so its tables are compared with the option `headroom=1`."
            ),
            (
                "On the paper's own workload nothing is to be gained without knowing sizes: `wham-improved` "
                "stays with WHAM there, on any number of cores."
            ),
        ),
    )


@dataclass(frozen=True)
class Point:
    """A setting and the value of its cell."""

    where: Where
    value: Any

    @property
    def place(self) -> str:
        """The setting in words."""
        name, cores, load = self.where
        return f"{WORKLOADS[name][0]}, n = {cores}, ρ = {load:g}"

    def gap(self, policy: str) -> float:
        """How far a policy lies above the optimum, in per cent."""
        real = self.value["real"]
        return 100.0 * float(real["policies"][policy]["cost"] / real["optimum"] - 1.0)

    def term(self, which: str) -> float:
        """(cost − V*)·n of the exact chain: what the 1/n term is to be compared with."""
        return float((self.value[which] - self.value["bound"]) * self.where[1])


def _points(what: str, settings: list[Where], values: Values) -> list[Point]:
    found = [Point(where, values[key_of(what, *where)]) for where in settings]
    return [point for point in found if not failed(point.value)]


def gap_points(effort: Effort, values: Values) -> list[Point]:
    """Exact gaps."""
    return _points("gap", gap_settings(effort), values)


def order_points(effort: Effort, values: Values) -> dict[str, list[Point]]:
    """1/n terms by system, from few to many cores."""
    found: dict[str, list[Point]] = {}
    for point in _points("order", order_settings(effort), values):
        found.setdefault(point.where[0], []).append(point)
    return found


def extrapolated(points: list[Point], which: str) -> float:
    """The limit of the exact terms, by the two largest systems (Richardson)."""
    if len(points) < 2:
        return nan
    small, large = points[-2:]
    n, m = small.where[1], large.where[1]
    return (large.term(which) * m - small.term(which) * n) / (m - n)


def paired(pair: str, name: str, value: Any) -> Gain:
    """The gain of a pair of policies from the value of a cell; 0 where one steps back to the other."""
    if not failed(value) and "results" not in value:
        return Gain(name, Estimate(0.0, 0.0, 0.0), {"jobs": 0})
    return gain(name, PAIRS[pair].policy, value, PAIRS[pair].base)


def held_out_gains(effort: Effort, pair: str, values: Values) -> list[Gain]:
    """Gains on the held-out workloads."""
    found = []
    for seed in seeds_of(effort, pair):
        document, cores, load = setting(seed)
        name = f"seed {seed}: {len(document['classes'])} classes, n = {cores}, ρ = {load:.2f}"
        found.append(paired(pair, name, values[f"held-out-{pair}-{seed}"]))
    return found


def stepped_back(effort: Effort, pair: str, values: Values) -> int:
    """On how many held-out workloads a policy is the one that it improves."""
    found = [values[f"held-out-{pair}-{seed}"] for seed in seeds_of(effort, pair)]
    return sum(not failed(value) and bool(value["note"]) for value in found)


def mean_gain(gains: list[Gain]) -> Estimate:
    """The mean over workloads, each of which has an error of its own (95 %)."""
    known = [one.of for one in gains if one.result is not None]
    if not known:
        return Estimate()
    mean = sum(e.mean for e in known) / len(known)
    half = sum(e.half_width**2 for e in known) ** 0.5 / len(known)
    return Estimate(mean, mean - half, mean + half)


def limit_points(effort: Effort, values: Values) -> list[Point]:
    """Costs over the number of cores."""
    return _points("limit-at-ease", limit_settings(effort), values)


def load_points(effort: Effort, pair: str, values: Values) -> list[Point]:
    """Costs over the load."""
    return _points(f"load-{pair}", [where for one, where in load_settings(effort) if one == pair], values)


def study_gains(effort: Effort, values: Values) -> dict[Where, Gain]:
    """Gains on the settings of the study with sizes known."""
    points = _points("study-trusting", study_settings(effort), values)
    return {point.where: paired("trusting", point.place, point.value) for point in points}


def gaps_figure(points: list[Point]) -> Figure:
    """Gaps to the optimum, setting by setting."""
    names = tuple(
        f"{SHORT[name]}: {cores} cores, {load:g}" for name, cores, load in (p.where for p in points)
    )
    x = tuple(map(float, range(len(points))))
    series = tuple(
        Series(title, x, tuple(p.gap(policy) for p in points), style="points", colour=colour)
        for colour, (policy, title) in enumerate(GAPS.items())
    )
    return Figure(
        "few-cores-gaps",
        "Distance from the optimum",
        "By how many per cent WHAM and wham-improved cost more than the best policy that is blind to sizes: "
        "exact chains, by system, number of cores and load. As it is, wham-improved is ready for a load 25 % "
        "higher than told; with headroom=1 it is not.",
        (Panel(Axis("", categories=names), Axis("above the optimum, %", "log"), series),),
    )


def gaps_table(points: list[Point]) -> Table:
    """The same beside the numbers of the study."""
    known = [BLIND_STUDY.get(p.where) for p in points]
    columns: dict[str, tuple[Any, ...]] = {
        "system": tuple(WORKLOADS[p.where[0]][0] for p in points),
        "cores": tuple(p.where[1] for p in points),
        "load": tuple(p.where[2] for p in points),
        "optimum": tuple(p.value["real"]["optimum"] for p in points),
        "WHAM above it, %": tuple(p.gap(WHAM) for p in points),
        "wham-improved, %": tuple(p.gap(IMPROVED) for p in points),
        "with headroom=1, %": tuple(p.gap(TRUSTING) for p in points),
        "WHAM in the study, %": tuple(None if k is None else k.wham for k in known),
        "fit of the study, %": tuple(None if k is None else k.fitted for k in known),
        "states": tuple(p.value["states"] for p in points),
    }
    return Table("few-cores-gaps", "Exact distances from the optimum", columns)


def terms_figure(terms: Mapping[str, list[Point]]) -> Figure:
    """What exact costs add to V*, times n, beside both coefficients."""
    panels = []
    for name, points in terms.items():
        x, last = tuple(float(p.where[1]) for p in points), points[-1].value
        series = []
        rows = (("wham", "WHAM", "wham term"), ("optimum", "the optimum", "best term"))
        for colour, (which, title, term) in enumerate(rows):
            exact = tuple(p.term(which) for p in points)
            series.append(Series(title, x, exact, style="both", colour=colour))
            line = (last[term],) * len(x)
            series.append(Series(f"{title}: theory", x, line, style="dashed", colour=colour))
        title = f"{WORKLOADS[name][0]}, ρ = {points[0].where[2]:g}"
        panels.append(Panel(Axis("cores n", "log"), Axis("(cost − V*)·n"), tuple(series), title=title))
    return Figure(
        "few-cores-terms",
        "The 1/n term: exact chains and theory",
        "What exact costs exceed V* by, times n: WHAM, and the best policy that is blind to sizes. They tend "
        "to the coefficients that theory gives (dashed), which lie close together.",
        tuple(panels),
    )


def held_out_figure(gains: Mapping[str, list[Gain]]) -> Figure:
    """All held-out workloads, from the largest gain to the smallest."""
    panels = []
    for pair, mine in gains.items():
        known = sorted(together(mine), key=lambda e: e.mean)
        shown = [one.scaled(100.0) for one in known]
        x = [float(i) for i in range(1, len(shown) + 1)]
        title = f"{PAIRS[pair].policy} against {PAIRS[pair].base}"
        one = Series.of("held-out workloads", x, shown, "points", 0)
        panels.append(Panel(Axis("rank"), Axis("difference of cost, %"), (one,), title=title))
    return Figure(
        "few-cores-held-out",
        "Workloads that were held out",
        "Cost relative to the policy that is improved, on the same jobs, workload by workload; below 0 is "
        "cheaper. Intervals hold all together with 99 %. Points at 0 without one are workloads on which the "
        "policy steps back.",
        tuple(panels),
    )


def limits_figure(limits: Sequence[Point], loads: Mapping[str, list[Point]]) -> Figure:
    """Cost over V* by n, and what is gained by load."""
    series = []
    for name in dict.fromkeys(p.where[0] for p in limits):
        mine, colour = [p for p in limits if p.where[0] == name], COLOURS[name]
        x = tuple(float(p.where[1]) for p in mine)
        for policy, style in ((WHAM, "dashed"), (IMPROVED, "both")):
            y = tuple(p.value["results"][policy]["gap"] for p in mine)
            series.append(Series(f"{WORKLOADS[name][0]}: {policy}", x, y, style=style, colour=colour))
    panels = [Panel(Axis("cores n", "log"), Axis("cost above V*", "log"), tuple(series), title="many cores")]
    for pair, points in loads.items():
        if points:
            title = f"{PAIRS[pair].policy} against {PAIRS[pair].base}"
            axes = Axis("load ρ"), Axis("difference of cost, %")
            panels.append(Panel(*axes, _over_loads(pair, points), title=title))
    return Figure(
        "few-cores-limits",
        "Many cores, and high loads",
        "First: by which share the cost exceeds the lower bound, over the number of cores. WHAM knows sizes "
        "here, and makes use of them when jobs outnumber cores; wham-improved is WHAM on the paper's "
        "workload and on many cores. Then: what is gained over the load (95 %).",
        tuple(panels),
    )


def _over_loads(pair: str, points: list[Point]) -> tuple[Series, ...]:
    series = []
    for name in dict.fromkeys(p.where[0] for p in points):
        mine = [p for p in points if p.where[0] == name]
        gains = [paired(pair, p.place, p.value).percent for p in mine]
        title = f"{WORKLOADS[name][0]}, n = {mine[0].where[1]}"
        series.append(Series.of(title, [p.where[2] for p in mine], gains, "both", COLOURS[name]))
    return tuple(series)


def near_optimal(points: list[Point]) -> Verdict:
    """The improvement must be next to optimal in every setting, and WHAM must not."""
    worst, careful = (max(points, key=lambda p: p.gap(policy)) for policy in (TRUSTING, IMPROVED))
    text = (
        f"largest gap {worst.gap(TRUSTING):.3f} % ({worst.place}), where WHAM has {worst.gap(WHAM):.2f} %; "
    )
    text += f"WHAM at most {max(p.gap(WHAM) for p in points):.1f} %; ready for a load 25 % higher, "
    text += f"wham-improved has {careful.gap(IMPROVED):.2f} % at most ({careful.place})"
    statement = (
        "On small systems wham-improved, if the load is the one told (headroom=1), is within "
        f"{CLOSE} % of the best policy that is blind to sizes"
    )
    return Verdict(statement, worst.gap(TRUSTING) <= CLOSE, text)


def as_in_the_study(points: list[Point]) -> Verdict:
    """WHAM's gaps to the digits of the study; the improvement's no larger."""
    off, texts = [], []
    for point in points:
        known = BLIND_STUDY.get(point.where)
        if known is not None:
            ours, fitted = point.gap(WHAM), point.gap(TRUSTING)
            same = abs(ours - known.wham) <= DIGITS.get(point.where, LAST_DIGIT)
            off.append(not (same and fitted <= known.fitted))
            texts.append(f"{ours:.2f} and {fitted:.2f} (study {known.wham:g}, {known.fitted:g})")
    statement = (
        "WHAM's gaps are those of the study, with headroom=1 wham-improved's are no larger than its fit's"
    )
    return Verdict(statement, not any(off) if off else None, "; ".join(texts) or "no setting of the study")


def terms_agree(terms: dict[str, list[Point]], effort: str) -> Verdict:
    """Exact chains on many cores against both coefficients."""
    off, texts = [], []
    for name, points in terms.items():
        last = points[-1].value
        for which, term in (("optimum", "best term"), ("wham", "wham term")):
            off.append(abs(extrapolated(points, which) / last[term] - 1.0))
            word = "best" if which == "optimum" else "WHAM"
            texts.append(
                f"{WORKLOADS[name][0]}, {word}: {extrapolated(points, which):.4f}, theory {last[term]:.4f}"
            )
    statement = f"Exact chains extrapolate to both 1/n coefficients within {SAME_TERM[effort]:.0%}"
    return Verdict(statement, max(off) <= SAME_TERM[effort], f"worst {max(off):.2%}; " + "; ".join(texts))


def gains_on_average(pair: str, gains: list[Gain], stayed: int) -> Verdict:
    """The mean over the held-out workloads must be below 0 for sure."""
    mean = mean_gain(gains)
    statement = f"On held-out workloads {PAIRS[pair].policy} costs less than {PAIRS[pair].base} on average"
    text = (
        f"{len(gains)} workloads: mean {mean.mean:+.2%} ± {mean.half_width:.2%}, best "
        f"{min(one.of.mean for one in gains):+.1%}; steps back on {stayed}"
    )
    return Verdict(statement, True if mean.high < 0.0 else False if mean.low > 0.0 else None, text)


def to_the_bound(points: list[Point], *, far: bool) -> Verdict:
    """Cost over V* must fall with n, to next to nothing."""
    fell, ends, texts = [], [], []
    for name, group in groupby(points, key=lambda p: p.where[0]):
        mine = list(group)
        gaps = [p.value["results"][IMPROVED]["gap"] for p in mine]
        fell.append(all(b < a for a, b in pairwise(gaps)))
        ends.append(gaps[-1])
        wham = mine[-1].value["results"][WHAM]["gap"]
        texts.append(f"{WORKLOADS[name][0]}: {gaps[-1]:+.3%} at n = {mine[-1].where[1]} (WHAM {wham:+.3%})")
    statement = "As n grows the cost of wham-improved falls towards the lower bound V*"
    holds = all(fell) and (not far or max(ends) <= NEAR)
    return Verdict(statement, holds, "; ".join(texts))


def stays_stable(points: list[Point]) -> Verdict:
    """No policy may lose its steady state as the load rises."""
    lost = [p for p in points if not all(r["stable"] for r in p.value["results"].values())]
    highest = max(p.where[2] for p in points)
    text = f"{len(points)} runs up to ρ = {highest:g}"
    text += f"; without a steady state: {'; '.join(p.place for p in lost)}" if lost else ", all steady"
    return Verdict("Both policies are stable at every load that was tried", not lost, text)


def gains_of_the_study(gains: dict[Where, Gain]) -> Verdict:
    """With sizes known: a gain for sure, of at least a share of the study's, but for high loads."""
    statement = f"With sizes known the gains of the study up to ρ = {UP_TO} are reached to {SHARE:.0%}"
    gains = {where: one for where, one in gains.items() if where[2] <= UP_TO}
    if not gains:
        return Verdict(statement, None, "not simulated at this effort")
    known = together(list(gains.values()))
    aims = [SIZED_STUDY[where] / 100.0 for where in gains]
    short = [e.low > SHARE * aim for e, aim in zip(known, aims, strict=True)]
    sure = [e.high < SHARE * aim for e, aim in zip(known, aims, strict=True)]
    rows = zip(gains.values(), known, aims, strict=True)
    text = "; ".join(f"{g.name}: {e.mean:+.2%} ± {e.half_width:.2%} (study {a:+.2%})" for g, e, a in rows)
    return Verdict(statement, False if any(short) else True if all(sure) else None, text)
