"""From the bandit to WHAM: optimal actions of a single job, indexability, and the limit of no discount."""

from malleable.paper.experiments.e07_whittle.cells import cells
from malleable.paper.experiments.e07_whittle.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
