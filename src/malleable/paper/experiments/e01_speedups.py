"""Speedup functions: the paper's examples, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.contracts import Speedup
from malleable.paper.contracts import Cell, Effort, Findings, Table, Verdict
from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from malleable.paper.contracts import Values

EXAMPLES: dict[str, dict[str, Any]] = {
    "k^0.3 (class 1)": {"kind": "power", "exponent": 0.3},
    "√k (class 2)": {"kind": "power", "exponent": 0.5},
    "Amdahl, q = 0.2 (class 3)": {"kind": "amdahl", "sequential": 0.2},
    "Amdahl, q = 0.02": {"kind": "amdahl", "sequential": 0.02},
    "linear": {"kind": "rooftop", "cores": 64.0},
}
"""The three of the paper's workload, one that scales well, and the diagonal."""
WIDEST = 64


def cells(effort: Effort) -> list[Cell]:  # noqa: ARG001 - nothing to choose
    """One cell a function: its speed at widths from 1 on."""
    return [Cell(f"example-{i}", curve, {"speedup": e}) for i, e in enumerate(EXAMPLES.values())]


def curve(speedup: dict[str, Any]) -> dict[str, Any]:
    """Widths and speeds."""
    k = np.unique(np.concatenate([np.linspace(1.0, 4.0, 31), np.geomspace(4.0, WIDEST, 61)]))
    return {"k": k.tolist(), "s": np.asarray(Speedup.of(speedup)(k)).tolist()}


def findings(effort: Effort, values: Values) -> Findings:  # noqa: ARG001
    """The curves, and whether they are what the theory assumes."""
    curves = {name: values[f"example-{i}"] for i, name in enumerate(EXAMPLES)}
    series = tuple(Series(name, tuple(c["k"]), tuple(c["s"])) for name, c in curves.items())
    k = next(iter(curves.values()))["k"]
    return Findings(
        title="Speedup functions",
        source="Figure: Examples of speedup functions",
        statement=(
            "A job on k cores runs s(k) times as fast as on one. More cores never hurt, but each one "
            "helps less than the one before: s is concave, and s(k) ≤ k."
        ),
        figures=(
            Figure(
                "speedups",
                "Speedup functions",
                "Speed s(k) over the number of cores k; the closer to the diagonal, the better a job scales.",
                (Panel(Axis("cores k", "log"), Axis("speed s(k)", "log"), series),),
            ),
        ),
        tables=(
            Table(
                "speedups",
                "Speeds",
                {"k": tuple(k), **{n: tuple(c["s"]) for n, c in curves.items()}},
                shown=False,
            ),
        ),
        verdicts=tuple(concave(name, c["k"], c["s"]) for name, c in curves.items()),
    )


def concave(name: str, k: list[float], s: list[float]) -> Verdict:
    """Whether slopes fall, and no speed exceeds the cores."""
    slopes = np.diff(s) / np.diff(k)
    rise = float(np.max(np.diff(slopes) / slopes[:-1]))
    excess = float(np.max(np.array(s) / np.array(k)))
    return Verdict(
        f"{name} is increasing, concave and at most k",
        bool(np.all(slopes >= 0.0) and rise <= 1e-9 and excess <= 1.0 + 1e-12),
        f"largest s(k)/k = {excess:.6g}, slope at {k[-1]:g} cores {slopes[-1]:.3g}",
    )
