"""Figures and tables of e11_refined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table, failed
from malleable.paper.experiments.e11_refined.cells import LOAD, LOAD_CORES, POLICIES, WORKLOADS
from malleable.paper.experiments.e11_refined.readings import error
from malleable.paper.experiments.shared.curves import stacked
from malleable.plots.figures import Axis, Figure, Panel, Series
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Values

    Curves = Mapping[tuple[str, str], list[Any]]


def costs(simulated: Sequence[int], values: Values, curves: Curves) -> Figure:
    """Exact, simulated, refined and mean-field costs by number of cores."""
    panels = []
    for name, (title, _) in WORKLOADS.items():
        series = []
        for policy, (label, colour) in POLICIES.items():
            found = curves[name, policy]
            more = [values[f"predicted-{policy}-{n}"] for n in simulated] if name == "paper" else []
            guess = {float(v["cores"]): v["refined"] for v in sorted([*found, *more], key=_cores)}
            x, exact = tuple(map(float, map(_cores, found))), tuple(v["exact"] for v in found)
            series += [
                Series(f"{label}, refined", tuple(guess), tuple(guess.values()), colour=colour),
                Series(f"{label}, exact", x, exact, style="points", colour=colour),
            ]
            if name == "paper":
                series.append(_simulated_series(simulated, values, policy, label, colour))
        panels.append(Panel(Axis("cores n", "log"), Axis("mean cost per job"), tuple(series), title=title))
    return Figure(
        "refined-costs",
        "Predicted, exact and simulated costs",
        f"Mean holding cost over the number of cores at load {LOAD:g}. The refined mean field needs no more "
        "than the fixed point and its derivatives.",
        tuple(panels),
    )


def _cores(value: Mapping[str, Any]) -> int:
    return int(value["cores"])


def _simulated_series(
    simulated: Sequence[int], values: Values, policy: str, label: str, colour: int
) -> Series:
    pairs = [(n, values[f"simulated-{n}"]) for n in simulated]
    known = [(float(n), read_interval(v["results"][policy]["cost"])) for n, v in pairs if not failed(v)]
    cores, costs = [n for n, _ in known], [cost for _, cost in known]
    return Series.of(f"{label}, simulated", cores, costs, "points", colour + 8)


def errors(curves: Curves) -> Figure:
    """Relative errors of the approximations by number of cores."""
    panels = []
    for name, (title, _) in WORKLOADS.items():
        series = []
        for policy, (label, colour) in POLICIES.items():
            found = curves[name, policy]
            x = tuple(float(v["cores"]) for v in found)
            for key, kind, style in (("refined", "refined", "both"), ("limit", "mean field", "dashed")):
                y = tuple(abs(error(v, key)) for v in found)
                series.append(Series(f"{label}, {kind}", x, y, style=style, colour=colour))
        panels.append(
            Panel(Axis("cores n", "log"), Axis("relative error", "log"), tuple(series), title=title)
        )
    return Figure(
        "refined-errors",
        "Errors of the predictions",
        "Distance from the exact cost, relative to it. Where the error of the refined mean field changes "
        "sign, it is small by chance.",
        tuple(panels),
    )


def over_load(loads: list[Any]) -> Figure:
    """Relative errors by load."""
    x = tuple(v["load"] for v in loads)
    series = (
        Series("refined", x, tuple(error(v) for v in loads), style="both", colour=0),
        Series("mean field", x, tuple(error(v, "limit") for v in loads), style="both", colour=6),
    )
    marks = tuple((v["load"], error(v), "does not apply") for v in loads if not v["applies"])
    panel = Panel(Axis("system load ρ"), Axis("relative error"), series, marks=marks)
    return Figure(
        "refined-load",
        "Errors over the load",
        f"WHAM on {LOAD_CORES} cores with exponential sizes. Marked: the result says that it does not apply, "
        "because a class is near a kink of its demand or jobs outnumber cores too often.",
        (panel,),
    )


def table(curves: Curves) -> Table:
    """Exact costs and approximations."""
    parts = [
        {
            "workload": (WORKLOADS[name][0],) * len(found),
            "policy": (POLICIES[policy][0],) * len(found),
            **_columns(found),
        }
        for (name, policy), found in curves.items()
    ]
    return Table("refined", "Exact and predicted costs", stacked(parts))


def load_table(loads: list[Any]) -> Table:
    """Exact costs and approximations by load."""
    return Table("refined-load", f"WHAM on {LOAD_CORES} cores over the load", _columns(loads))


def _columns(found: list[Any]) -> dict[str, tuple[Any, ...]]:
    return {
        "cores": tuple(v["cores"] for v in found),
        "load": tuple(v["load"] for v in found),
        "exact": tuple(v["exact"] for v in found),
        "mean field": tuple(v["limit"] for v in found),
        "refined": tuple(v["refined"] for v in found),
        "error": tuple(error(v) for v in found),
        "applies": tuple("yes" if v["applies"] else v["reason"] for v in found),
        "lost by the chain": tuple(v["truncation"] for v in found),
    }
