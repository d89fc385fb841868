"""Figures and tables of the refined mean field: costs and errors over n, and errors over the load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Table, failed
from malleable.paper.experiments import _evidence as ev
from malleable.paper.experiments._curves import drawn, stacked
from malleable.paper.experiments._optimality import exponential
from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from malleable.paper.contracts import Values

    Curves = Mapping[tuple[str, str], list[Any]]

WORKLOADS: dict[str, tuple[str, str | dict[str, Any]]] = {
    "paper": ("the paper's workload", "paper"),
    "exponential": ("exponential sizes of the same means", exponential()),
}
POLICIES = {"wham": ("WHAM", 0), "equi": ("EQUI", 2), "greedy": ("GREEDY", 3)}
"""Names and colours."""
LOAD = 0.25
LOAD_CORES = 32
"""Cores on which the load is varied, under WHAM with exponential sizes."""


def error(value: Mapping[str, Any], key: str = "refined") -> float:
    """By which share a prediction is off the exact cost."""
    return float(value[key] / value["exact"] - 1.0)


def costs(simulated: Sequence[int], values: Values, curves: Curves) -> Figure:
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
    known = [(float(n), ev.estimate(v["results"][policy]["cost"])) for n, v in pairs if not failed(v)]
    cores, costs = [n for n, _ in known], [cost for _, cost in known]
    return drawn(f"{label}, simulated", cores, costs, "points", colour + 8)


def errors(curves: Curves) -> Figure:
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
