"""Speedup functions: the paper's examples, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.paper.contracts import Effort, Findings, Table, Verdict
from malleable.paper.experiments.e01_speedups.cells import EXAMPLES
from malleable.plots.figures import Axis, Figure, Panel, Series

if TYPE_CHECKING:
    from malleable.paper.contracts import Values


def findings(effort: Effort, values: Values) -> Findings:  # noqa: ARG001
    """The curves, and whether they are what the theory assumes."""
    curves = {name: values[f"example-{i}"] for i, name in enumerate(EXAMPLES)}
    series = tuple(Series(name, tuple(c["k"]), tuple(c["s"])) for name, c in curves.items())
    k = next(iter(curves.values()))["k"]
    return Findings(
        title="Speedup functions",
        source="Figure 1: Examples of speedup functions",
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
