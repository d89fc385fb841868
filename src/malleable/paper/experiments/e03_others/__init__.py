"""WHAM against EQUI and GREEDY as the number of cores grows: Figure "WHAM vs. EQUI and GREEDY"."""

from malleable.paper.experiments.e03_others.cells import cells
from malleable.paper.experiments.e03_others.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
