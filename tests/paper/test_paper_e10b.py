"""Experiment 10b: what is said of `wham-discounted` follows from the numbers."""

from __future__ import annotations

import pytest

from malleable.paper.contracts import NORMAL, QUICK
from malleable.paper.experiments import e10b_discounted as e10b
from malleable.paper.experiments.e10b_discounted.cells import RANDOM, RULE
from support.paper_numbers import comparison

WORSE, BETTER, TENDS = "On the map", "With four classes it is cheaper", "With more cores"


def gain(cores):
    """A gain that falls with the cores, as measured."""
    return -0.2 / cores


def values(effort, change=lambda _key, relative: relative):
    """Made-up values of all cells: WHAM costs 1, Whittle a little less, the rule what `gain` says."""
    made = {}
    for cell in e10b.cells(effort):
        if cell.key == "rates":
            made[cell.key] = [1.0] * len(cell.arguments["loads"])
        elif cell.key.startswith("optimum"):
            made[cell.key] = {"cost": 0.99}
        else:
            cores = cell.arguments["cores"]
            costs = {"wham": 1.0}
            for policy in cell.arguments["policies"][1:]:
                relative = gain(cores) if policy == RULE else 0.5 * gain(cores)
                costs[policy] = 1.0 + change(cell.key, relative)
            made[cell.key] = comparison(costs, bound=0.9)
    return made


def verdict(made, start, effort=NORMAL):
    (found,) = (v for v in e10b.findings(effort, made).verdicts if v.statement.startswith(start))
    return found


@pytest.mark.parametrize("effort", [QUICK, NORMAL], ids=lambda effort: effort.name)
def test_good_numbers_bear_it_out(effort):
    """A rule that is cheaper everywhere, and less so on more cores, gets all it claims."""
    made = values(effort)
    for start in (WORSE, BETTER, TENDS):
        assert verdict(made, start, effort).holds


def test_one_setting_that_is_dearer_is_told():
    """A loss of one percent in a single setting turns the first verdict."""
    made = values(NORMAL, lambda key, relative: 0.01 if key == "at-four-32-0.9" else relative)
    assert verdict(made, WORSE).holds is False
    assert "+1.00%" in verdict(made, WORSE).measured


def test_no_gain_is_no_gain():
    """Where the rule costs what WHAM does it is not called cheaper."""
    assert not verdict(values(NORMAL, lambda _key, _relative: 0.0), BETTER).holds


def test_a_gain_that_stays_does_not_vanish():
    """A policy that is 5 % cheaper on any number of cores does not tend to WHAM."""
    assert not verdict(values(NORMAL, lambda _key, _relative: -0.05), TENDS).holds


def test_held_out_workloads_are_the_same_every_time():
    """Random workloads depend on their seeds alone, and are not those that the rule was chosen on."""
    cells = {cell.key: cell.arguments for cell in e10b.cells(NORMAL) if cell.key.startswith("random")}
    again = {cell.key: cell.arguments for cell in e10b.cells(NORMAL) if cell.key.startswith("random")}
    assert cells == again
    assert len(cells) == RANDOM
