"""Exact sizes do not matter on many cores: the proposition that all jobs of a class run on k_i* cores."""

from malleable.paper.experiments.e06_sizes.cells import cells
from malleable.paper.experiments.e06_sizes.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
