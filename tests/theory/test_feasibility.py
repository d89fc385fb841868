"""Whether cores can do the work at all: one test, of the load with every job on its most efficient width."""

from __future__ import annotations

import pytest

from malleable import compare, simulate
from malleable.errors import InfeasibleError
from malleable.model import Workload
from malleable.theory.relaxed import bound
from support import strategies as gen

FEW = {"jobs": 20_000, "seed": 1}


def super_linear(load, cores=8):
    """One class that is three times as fast on two cores: so, load 1.2 keeps .8 of the cores busy."""
    table = {"kind": "table", "cores": [1.0, 2.0, 8.0], "speedup": [1.0, 3.0, 4.0]}
    return Workload.from_dict({"classes": [gen.job_class("fast", 1.0, 1.0, table, 1.0)]}).at(cores, load)


def test_more_work_than_cores_that_fits():
    """At load 1.2 and effective load .8 `simulate` and `compare` run, settle, and stay above the bound."""
    workload = super_linear(1.2)
    lowest = bound(workload, 8).bound
    result = simulate(workload, 8, "wham", **FEW)
    assert result.status.name == "COMPLETE"
    assert result.cost.high > lowest
    assert compare(workload, 8, ["wham", "greedy"], **FEW).results


@pytest.mark.parametrize("load", [1.5, 1.6])
def test_more_work_than_fits(load):
    """At an effective load of 1 or more bound and simulation refuse for the same reason, with the same n."""
    with pytest.raises(InfeasibleError) as of_bound:
        bound(super_linear(load), 8)
    with pytest.raises(InfeasibleError) as of_run:
        simulate(super_linear(load), 8, "wham", **FEW)
    assert of_run.value.problem == of_bound.value.problem
    assert of_run.value.hint.startswith(of_bound.value.hint)


def test_widths_beyond_the_machine_do_not_count():
    """A width that is efficient but wider than the machine does not help: load 1.2 on one core is refused."""
    with pytest.raises(InfeasibleError, match=r"1\.2"):
        simulate(super_linear(1.2, cores=1), 1, "wham", **FEW)


def test_a_policy_that_wastes_the_gain_is_unstable_by_itself():
    """One core each cannot do work of load 1.2, and the run says so instead of being refused."""
    result = simulate(super_linear(1.2), 8, "fcfs", **FEW)
    assert "unstable" in str(result)
