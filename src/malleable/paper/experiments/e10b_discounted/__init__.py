"""Does it pay to expect shortages to end? WHAM with a discounted premium against WHAM and Whittle."""

from malleable.paper.experiments.e10b_discounted.cells import cells
from malleable.paper.experiments.e10b_discounted.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
