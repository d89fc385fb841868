"""What the cells of e08_attractor show: figures, tables and verdicts."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Effort, Findings, Table, Verdict, failed
from malleable.paper.experiments.e08_attractor.cells import (
    BRACKETS,
    CORES,
    LAWS,
    SHOWN,
    SYSTEM_TIME,
    configurations,
)
from malleable.paper.experiments.shared import evidence as ev
from malleable.paper.experiments.shared.columns import interval_columns, stacked
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate, t_quantile
from malleable.theory.attractor import ARRIVED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.paper.contracts import Values

EARLY, LATE = 1e-2, 1e-4
"""Distances between which the rate of the final approach is measured."""
TOLERANCE = 0.15
"""How far from −1/2 the exponent of the deviation may lie, its interval included."""
CHOICES = {
    "starts": "the empty system, full ones of a single phase, and random mixtures filled at random",
    "arrived": f"within {ARRIVED:g} of the fixed point, relative to its length",
    "integration": "LSODA, relative error of a step 10⁻⁶",
    "more jobs than cores": "outside the equation's domain; jobs time-share there, one core each in turn",
    "system": (
        "starts with a crowd of jobs in random order; looked at up to 1000 times, at arrivals, "
        f"up to time {SYSTEM_TIME:g}"
    ),
    "random workloads": (
        "one to four classes; power, Amdahl and USL speedups; exponential, hyperexponential and Erlang "
        "sizes; load uniform from 0.05 to 0.95"
    ),
}


def findings(effort: Effort, values: Values) -> Findings:
    """Figures, tables and verdicts."""
    fluids = {law: values[f"fluid-{i}"] for i, law in enumerate(LAWS)}
    studies = studies_of(values)
    batches = [values[key] for key in values if key.startswith("random-")]
    random = [row for batch in batches if not failed(batch) for row in batch]
    systems = {
        name: {n: deviation_of(values[f"system-{i}-{n}"]) for n in CORES[effort.name]}
        for i, name in enumerate(configurations(effort))
    }
    shown = CORES[effort.name] if effort.quick else SHOWN
    return Findings(
        title="The mean field attracts",
        source="Theorem: mean field optimality of WHAM; the conjecture in its footnote",
        statement=(
            "With many cores the numbers of jobs of each class, divided by the number of cores, follow a "
            "differential equation. WHAM is optimal in that limit if every solution of the equation ends at "
            "its fixed point, where the cost is V*. The paper assumes this and conjectures that it is true. "
            "It is: more jobs mean fewer cores for every job, so that trajectories keep their order, and all "
            "are squeezed between one that only rises and one that only falls (the documentation has the "
            "proof). For each workload the assumptions of the theorem are checked, and solutions are "
            "followed from many starts all the same. Paths of the system itself are laid over them: they "
            "should stay within a distance of the order of 1/√n."
        ),
        figures=(
            distances_figure(fluids),
            bracket_figure({load: values[f"bracket-{load}"] for load in BRACKETS}),
            *paths_figures(configurations(effort), shown, values),
            deviations_figure(systems),
        ),
        tables=(studies_table(studies, random), deviations_table(systems), rates_table(fluids)),
        verdicts=(
            fixed_point(fluids),
            all_arrive("Every trajectory of the paper's workload ends at the fixed point", fluids, studies),
            all_arrive(
                "Every trajectory of random workloads ends at the fixed point",
                {},
                random,
                lost=sum(map(failed, batches)),
            ),
            final_rate(fluids),
            *(follows(name, found) for name, found in systems.items()),
        ),
        remarks=(
            (
                "Trajectories prove nothing; they could only have refuted the conjecture. What proves it is "
                "that the rule is a market at one price, whose demands use all cores at some price."
            ),
            (
                "The theorem lets jobs that outnumber cores time-share. WHAM's own order there, largest c/x "
                "first, is not monotone, and not covered."
            ),
            (
                "A start with as many jobs as cores is the edge of the equation's domain. Some trajectories "
                "pass through states with more jobs than cores first; the table counts them."
            ),
            "The largest deviation of a path is taken over time and classes, then averaged over seeds.",
        ),
    )


def final_rates(found: Any) -> list[float]:
    """The rate of each trajectory's final approach: the slope of log distance where it is small."""
    rates, t = [], np.array(found["times"])
    for path in found["distances"]:
        d = np.array(path)
        last = int(np.flatnonzero(d > EARLY).max(initial=-1)) + 1
        near = np.arange(len(d)) >= last
        near &= d > LATE
        if near.sum() >= 4:
            rates.append(float(np.polyfit(t[near], np.log(d[near]), 1)[0]))
    return rates


def studies_of(values: Values) -> list[dict[str, Any]]:
    """Studies of the paper's workload, by law of sizes and load."""
    return [
        {"law": law, **values[key]}
        for i, law in enumerate(LAWS)
        for key in values
        if key.startswith(f"study-{i}-")
    ]


def deviation_of(found: Any) -> Estimate:
    """Mean of the largest deviations over seeds, with its 95 % interval."""
    d = np.array(found["deviations"])
    mean = float(d.mean())
    half = t_quantile(len(d) - 1, 0.95) * float(d.std(ddof=1)) / sqrt(len(d))
    return Estimate(mean, mean - half, mean + half)


def distances_figure(fluids: dict[str, Any]) -> Figure:
    """Distances from the fixed point over time."""
    panels = []
    for law, found in fluids.items():
        series = [
            Series("trajectories", tuple(found["times"]), tuple(path), style="thin", colour=0)
            for path in found["distances"]
        ]
        t = (0.0, 6.0 / -found["slowest"])
        line = tuple(0.3 * float(np.exp(found["slowest"] * x)) for x in t)
        series.append(Series("slowest eigenvalue", t, line, style="dashed", colour=1))
        y = Axis("distance from the fixed point", "log", low=1e-5)
        panels.append(Panel(Axis("time"), y, tuple(series), title=f"{law} sizes"))
    return Figure(
        "attractor-distances",
        "All trajectories end at the fixed point",
        "Distance from the fixed point over time, relative to its length, from many starts: empty, full, and "
        "random mixtures. In the end all fall as straight lines on the logarithmic scale, with the slope of "
        "the slowest eigenvalue. Starts that are full of long jobs take longest to get near.",
        tuple(panels),
    )


def paths_figures(names: Iterable[str], cores: Sequence[int], values: Values) -> tuple[Figure, ...]:
    """The system over the equation, one figure a start."""
    figures = []
    for i, name in enumerate(names):
        found = [values[f"system-{i}-{n}"] for n in cores]
        title = f"The system from the start “{name}”"
        caption = (
            "Jobs of each class over the number of cores: a path of the system (lines) and the solution of "
            "the equation (dashed), for three numbers of cores. More cores, less noise."
        )
        figures.append(Figure(f"attractor-paths-{i}", title, caption, tuple(map(_path_panel, found))))
    return tuple(figures)


def _path_panel(found: Any) -> Panel:
    path, fluid = np.array(found["path"]["jobs"]), np.array(found["fluid"])
    series = [
        Series(f"class {c + 1}", tuple(found["path"]["times"]), tuple(path[:, c]), colour=c)
        for c in range(path.shape[1])
    ]
    series += [
        Series(
            f"class {c + 1}, equation",
            tuple(found["times"]),
            tuple(fluid[:, c]),
            style="dashed",
            colour=c + 8,
        )
        for c in range(fluid.shape[1])
    ]
    return Panel(Axis("time"), Axis("jobs / cores", low=0.0), tuple(series), title=f"{found['cores']} cores")


def bracket_figure(found: dict[float, Any]) -> Figure:
    """The two trajectories that hold all others between them, class by class."""
    panels = []
    for load, one in found.items():
        series = []
        for side, style in (("lower", "line"), ("upper", "dashed")):
            # Nothing is there at time 0, which a logarithm cannot show.
            times, jobs = one[side]["times"][1:], np.array(one[side]["jobs"])[1:]
            shift = 8 if side == "upper" else 0
            series += [
                Series(
                    f"class {c + 1}, {side}", tuple(times), tuple(jobs[:, c]), style=style, colour=c + shift
                )
                for c in range(jobs.shape[1])
            ]
        y = Axis("jobs / cores", "log", low=1e-4)
        panels.append(Panel(Axis("time"), y, tuple(series), title=f"load {load}"))
    met = ", ".join(f"t = {one['meet']:.3g} at load {load}" for load, one in found.items())
    return Figure(
        "attractor-bracket",
        "Two trajectories hold all others between them",
        "Jobs of each class over the number of cores, from the empty system (lines, which only rise) and "
        "from one with twice as many jobs as cores (dashed, which only fall). Every trajectory that starts "
        "below the "
        f"second stays between them. They are within 10⁻⁴ of each other from {met} on.",
        tuple(panels),
    )


def deviations_figure(systems: dict[str, dict[int, Estimate]]) -> Figure:
    """How far systems stray from the fluid, by number of cores."""
    series = [
        Series.of(name, tuple(map(float, found)), found.values(), "both", i)
        for i, (name, found) in enumerate(systems.items())
    ]
    n = tuple(map(float, next(iter(systems.values()))))
    series.append(Series("0.6/√n", n, tuple(0.6 / sqrt(x) for x in n), style="dashed", colour=6))
    panel = Panel(Axis("cores n", "log"), Axis("largest deviation", "log"), tuple(series))
    return Figure(
        "attractor-deviations",
        "How far the system strays from the equation",
        f"Largest distance of jobs / cores from the solution of the equation up to time {SYSTEM_TIME:g}, "
        "averaged over seeds, with 95 % intervals. On logarithmic axes 1/√n is a straight line.",
        (panel,),
    )


def studies_table(studies: list[dict[str, Any]], random: list[dict[str, Any]]) -> Table:
    """All trajectories that were followed, and how near they came."""
    rows = [*studies, *({"law": f"random, {row['classes']} classes", **row} for row in random)]
    keys = {
        "sizes": "law",
        "phases": "phases",
        "load": "load",
        "starts": "starts",
        "arrived": "converged",
        "largest final distance": "worst_distance",
        "slowest eigenvalue": "slowest",
        "proved": "proved",
        "all within 10⁻⁴ from time": "meet",
        "passed more jobs than cores": "left_domain",
    }
    columns = {title: tuple(row[key] for row in rows) for title, key in keys.items()}
    return Table("attractor-studies", "Where trajectories end", columns)


def deviations_table(systems: dict[str, dict[int, Estimate]]) -> Table:
    """Deviations of systems from the fluid."""
    parts = [
        {
            "start": (name,) * len(found),
            "cores": tuple(found),
            **interval_columns("largest deviation", found.values()),
            "times √n": tuple(d.mean * sqrt(n) for n, d in found.items()),
        }
        for name, found in systems.items()
    ]
    return Table("attractor-deviations", "Deviation of the system from the equation (95 %)", stacked(parts))


def rates_table(fluids: dict[str, Any]) -> Table:
    """Rates of the last approach."""
    rows = [(law, rate, found) for law, found in fluids.items() for rate in final_rates(found)]
    columns = {
        "sizes": tuple(law for law, *_ in rows),
        "rate of the final approach": tuple(rate for _, rate, _ in rows),
        "slowest eigenvalue": tuple(found["slowest"] for *_, found in rows),
    }
    return Table("attractor-rates", "Rates of the final approach, by trajectory", columns, shown=False)


def fixed_point(fluids: dict[str, Any]) -> Verdict:
    """Whether the fixed point costs what the bound says."""
    gaps = {law: found["cost"] / found["bound"] - 1.0 for law, found in fluids.items()}
    told = "; ".join(f"{law}: {f['cost']:.10f} and {f['bound']:.10f}" for law, f in fluids.items())
    return Verdict(
        "The cost at the fixed point is V*, whatever the law of sizes",
        all(abs(gap) < 1e-9 for gap in gaps.values()),
        f"cost and V*, {told}",
    )


def all_arrive(
    statement: str, fluids: dict[str, Any], studies: list[dict[str, Any]], lost: int = 0
) -> Verdict:
    """Counted over the studies, and over the trajectories that are shown; `lost` cells have no answer."""
    ends = [path[-1] for found in fluids.values() for path in found["distances"]]
    starts = sum(s["starts"] for s in studies) + len(ends)
    arrived = sum(s["converged"] for s in studies) + sum(end <= ARRIVED for end in ends)
    worst = max([*ends, *(s["worst_distance"] for s in studies)], default=0.0)
    slowest = max(s["slowest"] for s in studies)
    proved = sum(s["proved"] for s in studies)
    rest = ", measured in the others" if proved < len(studies) else ""
    text = (
        f"proved in {proved} of {len(studies)} settings{rest}; "
        f"{arrived} of {starts} starts arrive, largest final distance "
        f"{worst:.1g}; all eigenvalues of the linearised equation at most {slowest:.3g}"
    )
    text += f"; {lost} cells of more settings could not be integrated" if lost else ""
    all_do = bool(arrived == starts and slowest < 0.0)
    return Verdict(statement, None if lost and all_do else all_do, text)


def final_rate(fluids: dict[str, Any]) -> Verdict:
    """The slowest eigenvalue, found from formulas, must be what the integrated trajectories show."""
    apart, told = [], []
    for law, found in fluids.items():
        rate = float(np.median(final_rates(found)))
        apart.append(abs(rate / found["slowest"] - 1.0))
        told.append(f"{law}: median {rate:.3f}, eigenvalue {found['slowest']:.3f}")
    return Verdict(
        "Trajectories approach it at the rate of the slowest eigenvalue", max(apart) < 0.05, "; ".join(told)
    )


def follows(name: str, found: dict[int, Estimate]) -> Verdict:
    """Whether the deviation is a power of n with exponent −1/2."""
    exponent, _ = ev.power(list(found), list(found.values()))
    statement = f"From the start “{name}” the system deviates from the equation by the order of 1/√n"
    told = "; ".join(f"n = {n}: {d.mean:.4f} ± {d.half_width:.4f}" for n, d in found.items())
    text = f"largest deviation {told}; power of n {exponent.mean:.3f} ± {exponent.half_width:.3f}"
    if exponent.high < -0.5 - TOLERANCE or exponent.low > -0.5 + TOLERANCE:
        return Verdict(statement, False, text)
    inside = exponent.low >= -0.5 - TOLERANCE and exponent.high <= -0.5 + TOLERANCE
    return Verdict(statement, inside or None, text)
