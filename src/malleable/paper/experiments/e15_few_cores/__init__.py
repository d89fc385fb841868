"""Better than WHAM on few cores: improved policies beside the optimum, held-out workloads, the limit."""

from malleable.paper.experiments.e15_few_cores.cells import cells
from malleable.paper.experiments.e15_few_cores.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
