"""Why FW-CAM is mean-field optimal: its widths converge, its cores fill up, and no job waits."""

from malleable.paper.experiments.e04_fwcam.cells import cells
from malleable.paper.experiments.e04_fwcam.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
