"""SmartFill: what would be optimal if nothing more arrived, at every arrival and departure anew.

For jobs that are all there at the start the optimum is GREEDY with constant weights, the *costates*, given
the order in which jobs finish (`theory.clearing`). SmartFill (arXiv 2509.01811) computes it for one concave
speedup; here speedups and weights may differ, and the order of finishing is guessed (`rules.smartfill_rule`).
For one power law it is heSRPT. Online it does not know that others will come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from malleable.policies.base import ANY, JobRule, Need, Program
from malleable.policies.rules.market import market_jobs_table
from malleable.policies.rules.smartfill_rule import room, smartfill_integer_rule, smartfill_rule
from malleable.theory.market import GreedyBuyers

if TYPE_CHECKING:
    from malleable.model import Workload


@dataclass(frozen=True)
class Smartfill(JobRule):
    """SmartFill: the optimum for the jobs present, re-applied at every event; any speedups and weights."""

    needs = "speedups, work left"

    blocking: ClassVar[bool] = False

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        kept = room()
        if not need.whole:
            return Program(smartfill_rule, np.concatenate([market_jobs_table(workload, cores), kept]))
        buyers = GreedyBuyers(workload.speedups, np.ones(len(workload.classes)), integer=True)
        table = market_jobs_table(workload, cores, buyers=buyers)
        return Program(smartfill_integer_rule, np.concatenate([table, kept]))
