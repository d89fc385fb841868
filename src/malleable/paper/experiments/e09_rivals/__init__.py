"""Which of the rivals come close to the lower bound as the number of cores grows? None, says the paper."""

from malleable.paper.experiments.e09_rivals.cells import cells
from malleable.paper.experiments.e09_rivals.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
