"""Figures and tables of e08_attractor."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.paper.contracts import Table
from malleable.paper.experiments.e08_attractor.cells import (
    SYSTEM_TIME,
)
from malleable.paper.experiments.e08_attractor.readings import (
    final_rates,
)
from malleable.paper.experiments.shared.curves import stacked
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate


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
            "largest deviation": tuple(d.mean for d in found.values()),
            "low": tuple(d.low for d in found.values()),
            "high": tuple(d.high for d in found.values()),
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
