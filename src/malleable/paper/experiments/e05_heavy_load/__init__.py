"""Near full load there is no room for parallelism: the proposition on ρ → 1."""

from malleable.paper.experiments.e05_heavy_load.cells import cells
from malleable.paper.experiments.e05_heavy_load.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
