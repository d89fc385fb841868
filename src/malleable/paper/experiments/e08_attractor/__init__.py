"""Do all trajectories of WHAM's mean-field equation end at the fixed point, and does the system follow?"""

from malleable.paper.experiments.e08_attractor.cells import cells
from malleable.paper.experiments.e08_attractor.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
