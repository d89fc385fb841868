"""Which policy wins, and by how much, over many random workloads: a map with its worst cases named."""

from malleable.paper.experiments.e14_map_of_policies.cells import cells
from malleable.paper.experiments.e14_map_of_policies.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
