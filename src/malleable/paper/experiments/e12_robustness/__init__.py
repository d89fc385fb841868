"""How much of WHAM's lead survives other loads, arrivals and sizes, wrong speedups, whole cores, no sizes?"""

from malleable.paper.experiments.e12_robustness.cells import cells
from malleable.paper.experiments.e12_robustness.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
