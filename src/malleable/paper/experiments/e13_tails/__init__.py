"""Tails and fairness: percentiles of response time and slowdown of every class under every policy."""

from malleable.paper.experiments.e13_tails.cells import cells
from malleable.paper.experiments.e13_tails.findings import CHOICES, findings

__all__ = ["CHOICES", "cells", "findings"]
