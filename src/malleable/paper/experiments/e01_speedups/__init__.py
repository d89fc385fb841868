"""Speedup functions: the paper's examples, drawn."""

from malleable.paper.experiments.e01_speedups.cells import cells
from malleable.paper.experiments.e01_speedups.findings import findings

__all__ = ["cells", "findings"]
