"""Where the paper's text is wrong: each error, its correction, and a number that shows it."""

from malleable.paper.experiments.e17_errata.cells import cells
from malleable.paper.experiments.e17_errata.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
