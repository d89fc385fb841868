"""How far from the optimum? Exact costs of policies beside the best policy that is blind to sizes."""

from malleable.paper.experiments.e10_optimality_gap.cells import cells
from malleable.paper.experiments.e10_optimality_gap.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
