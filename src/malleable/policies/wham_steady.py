"""WHAM with hysteresis: a job is moved only when the gain over what is left of its life pays for the move.

Equal to WHAM where moves are free. Where they are dear all jobs have whole cores, as a price that changes a
little then moves few of them. What a move costs is the class's `resize`; see `rules.steady_rule` for the
rule, and "Real machines" in the docs for how it compares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import InfeasibleError, UnsupportedError
from malleable.policies.base import ANY, Need, Program, encode
from malleable.policies.rules.class_rules import WHAM
from malleable.policies.rules.gears import GEAR_TABLE, gear_price, gear_table
from malleable.policies.rules.steady_demand import USUAL
from malleable.policies.rules.steady_rule import steady_rule
from malleable.policies.wham import Wham
from malleable.policies.wham_discounted import WhamDiscounted
from malleable.theory.market import cost_unit
from malleable.theory.relaxed import bound

if TYPE_CHECKING:
    from malleable.model import Workload


PARTS = 1e-3
"""Costs of a move, in mean sizes, up to which parts of cores are worth their many small moves."""


@dataclass(frozen=True)
class WhamSteady(Wham):
    """WHAM that moves a job only when that pays for what the move costs."""

    needs = "speedups, work left, costs of resizing; rates and mean sizes where moves cost"

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:
        if _moves_are_free(workload):
            return super().program(workload, cores, need)
        whole, arriving = need.whole or _dearest_move(workload) > PARTS, need.arrivals(workload)
        gears = gear_table(workload, cores, WHAM, real=not whole)
        gears[GEAR_TABLE.END] += len(USUAL)
        usual = np.empty(len(USUAL))
        usual[USUAL.RATE] = WhamDiscounted().outlook(arriving, cores).discount
        usual[USUAL.PRICE] = _long_run_price(arriving, cores) / cost_unit(workload.holding_costs)
        table = np.concatenate([gears, usual, encode(workload.speedups, widest=max(cores, 2.0))])
        return Program(steady_rule, table, whole=whole, price=gear_price, weighs="c")


def _long_run_price(workload: Workload, cores: float) -> float:
    """The price of the relaxed problem, which knows of restricted widths; 0 where it has no solution."""
    try:
        return bound(workload, cores).price
    except (InfeasibleError, UnsupportedError):
        return 0.0


def _dearest_move(workload: Workload) -> float:
    """What a move costs at most, in mean sizes of the class; a pause that varies counts as dear."""
    return max(
        math.inf if one.resize.varies else (one.resize.pause + one.resize.work) / one.size.mean
        for one in workload.classes
    )


def _moves_are_free(workload: Workload) -> bool:
    return all(one.resize.free for one in workload.job_types)
