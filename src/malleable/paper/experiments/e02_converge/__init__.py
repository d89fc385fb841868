"""FW-CAM and WHAM against the lower bound as the number of cores grows: Figure "FW-CAM vs. WHAM"."""

from malleable.paper.experiments.e02_converge.cells import cells
from malleable.paper.experiments.e02_converge.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
