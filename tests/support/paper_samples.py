"""Figures of every style and findings that try the page, with numbers made up for the purpose."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
import pytest

from malleable import plots
from malleable.paper.contracts import Findings, Table, Verdict
from malleable.paper.write import Chapter
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series

NAN = math.nan
CORES = (4, 8, 16, 32, 64, 128, 256, 512)
POLICIES = ("WHAM", "FW-CAM", "EQUI", "GREEDY*", "HELL", "KNEE", "A-heSRPT", "SRPT-all", "Pollux", "Sia")
NASTY = "a <script>alert(1)</script> & \"b\" 'c' </td> %{x} $x$"
"""A text that must be shown as it is, wherever it stands."""


@contextmanager
def one_format():
    """Pictures as SVG only, which is what a page shows: the other formats take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "SUFFIXES", ("svg",))
        yield


def costs(name: str, height: float, style: str = "both", **more) -> Series:
    """Costs that fall with the number of cores, with intervals."""
    y = 1.0 + height / np.sqrt(CORES)
    return Series(name, CORES, tuple(y), tuple(y - 0.05 * height), tuple(y + 0.05 * height), style, **more)


def with_gap(one: Series, at: int) -> Series:
    """The same series without one of its points."""
    y = [NAN if i == at else value for i, value in enumerate(one.y)]
    return Series(one.name, one.x, tuple(y), one.low, one.high, one.style, one.colour, one.notes)


MANY = Figure(
    "many-lines",
    "Cost above the lower bound",
    "Ten policies, bands, and two points that do not exist.",
    (
        Panel(
            Axis("cores n", "log"),
            Axis("cost / V*"),
            tuple(costs(name, 0.3 + 0.3 * i) for i, name in enumerate(POLICIES)),
            marks=((8, 2.0, "FW-CAM infeasible: less than one core per class"), (512, NAN, "unstable")),
        ),
    ),
)
STYLES = Figure(
    "styles",
    "Styles",
    "Every style of lines and points.",
    (
        Panel(
            Axis("cores n", "log"),
            Axis("gap, %", "log"),
            (costs("line", 1.0, "line"), costs("dashed", 0.5, "dashed"), costs("dotted", 0.7, "dotted")),
            title="lines",
        ),
        Panel(
            Axis("time"),
            Axis("jobs", low=0.0),
            tuple(
                Series(
                    "paths",
                    tuple(np.linspace(0, 9, 40)),
                    tuple(3 + np.sin(np.linspace(i, 9, 40))),
                    style="thin",
                )
                for i in range(4)
            ),
            title="thin",
        ),
        Panel(
            Axis("cores n", "log"),
            Axis("cost"),
            (
                with_gap(costs("both", 0.5, notes=tuple(f"{n} cores" for n in CORES)), 3),
                with_gap(costs("points", 0.9, "points"), 3),
            ),
            title="a gap",
            marks=tuple((n, 1.0, "infeasible") for n in (4, 8, 16)),
        ),
    ),
)
BARS = Figure(
    "bars",
    "Bars and names",
    "Bars side by side, and points on an axis of names.",
    (
        Panel(
            Axis("policy", categories=POLICIES[:6]),
            Axis("response time"),
            tuple(
                Series(f"class {c}", tuple(range(6)), (1.0 + c,) * 6, (0.9 + c,) * 6, (1.1 + c,) * 6, "bars")
                for c in (1, 2, 3)
            ),
        ),
        Panel(
            Axis("policy", categories=POLICIES[:6]),
            Axis("difference, %"),
            tuple(
                Series(
                    f"n = {n}", tuple(range(6)), (n / 9,) * 6, (n / 9 - 2,) * 6, (n / 9 + 2,) * 6, "points"
                )
                for n in (16, 64)
            ),
        ),
    ),
)
HEAT = Figure(
    "heat",
    "Cost of WHAM over FW-CAM",
    "Blue: WHAM is better.",
    (
        Panel(
            Axis("cores n", "log"),
            Axis("load"),
            grid=Grid(
                CORES,
                (0.1, 0.25, 0.5, 0.9),
                tuple(
                    tuple(
                        NAN if load > 0.8 and n < 16 else 1 + (load - 0.4) * math.log2(n) / 8 for n in CORES
                    )
                    for load in (0.1, 0.25, 0.5, 0.9)
                ),
                "ratio",
                1.0,
            ),
            title="about a middle",
            marks=((4, 0.9, "infeasible"),),
        ),
        Panel(
            Axis("p"),
            Axis("λ"),
            (Series("border", (0.0, 1.0), (0.0, 2.0), colour=3),),
            Grid(
                tuple(np.linspace(0, 1, 30)),
                tuple(np.linspace(0, 2, 20)),
                tuple(tuple(b * np.linspace(0, 1, 30)) for b in np.linspace(0, 2, 20)),
                "value",
            ),
            title="from low to high",
        ),
    ),
)
ODD = Figure(
    "odd",
    NASTY,
    NASTY,
    (
        Panel(
            Axis(NASTY), Axis(NASTY), (Series(NASTY, (1.0, 2.0), (1.0, NAN), notes=(NASTY, "")),), title=NASTY
        ),
    ),
)
FIGURES = (MANY, STYLES, BARS, HEAT, ODD)

WIDE_TABLE = Table(
    "wide",
    "A wide table",
    {
        "policy": ("WHAM", NASTY),
        "cores": (4, 1024),
        "cost": (1.23456789, NAN),
        **{f"column {i}": (i / 7, math.inf) for i in range(10)},
        "stable": (True, None),
    },
)
HIDDEN_TABLE = Table("hidden", "All numbers", {"n": (1, 2)}, shown=False)
VERDICTS = (
    Verdict("WHAM comes close to the bound", True, "gap 0.2 % at n = 1024"),
    Verdict(NASTY, False, NASTY),
    Verdict("FW-CAM is better than EQUI", None, "difference in [−0.1, 0.2]"),
)


def chapters(figures: tuple[Figure, ...] = FIGURES) -> tuple[Chapter, ...]:
    """Two experiments: one with everything, one that judges nothing."""
    first = Findings(
        "Lines",
        "Figure 3",
        f"A statement. {NASTY}",
        figures[:3],
        (WIDE_TABLE, HIDDEN_TABLE),
        VERDICTS,
        (NASTY,),
    )
    second = Findings("Heat maps", "beyond the paper", "What is to be seen.", figures[3:])
    return (
        Chapter(
            "e01_lines",
            first,
            {"β": "0.8"},
            {"a": {"results": {"wham": {"seed": 3, "seeds": [3, 4]}}}},
            ({"seed": 7},),
        ),
        Chapter("e02_heat", second),
    )
