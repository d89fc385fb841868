"""How close policies are to what a scheduler could do that knew all jobs: the bound for given jobs."""

from malleable.paper.experiments.e16_finite_n_bound.cells import cells
from malleable.paper.experiments.e16_finite_n_bound.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
