"""Costs at finite n without simulation: the refined mean field against exact and simulated costs."""

from malleable.paper.experiments.e11_refined.cells import cells
from malleable.paper.experiments.e11_refined.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
