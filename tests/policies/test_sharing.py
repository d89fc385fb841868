"""Parts of a core: only for policies that say that they share cores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import malleable
from malleable import catalog
from malleable.contracts import Allocation, Policy
from malleable.errors import InfeasibleError, PolicyError, UnstableError, UnsupportedError
from malleable.model import Workload
from support import situations
from support import strategies as gen
from support.examples import examples

POWER = {"kind": "power", "exponent": 0.5}
WORKLOAD = gen.one_class(POWER, rate=0.5)
DEMANDING = Workload.from_dict({"classes": [gen.job_class("a", 0.5, 1.0, POWER, 1.0) | {"quiet": 0.1}]})
RUN = {"jobs": 50, "interpreted": True}
DEAR = "wham_fitted:moments=1000"
"""A policy that takes a second to make its mind up about a workload."""


def halves(jobs, cores, table, out):
    """Half a core for each."""
    out[:] = 0.5


def half_returned(jobs, cores):
    """The same, returned."""
    return np.full(len(jobs), 0.5)


class Halves(Policy):
    """The same, as a policy that gives only `allocate`."""

    def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002 - ditto
        return Allocation(np.full(len(jobs), 0.5), None)


class SharedHalves(Halves):
    """The same, and says so."""

    sharing = True


def sharing(function):
    """A copy of a function that says that it shares cores."""

    def rule(jobs, cores, table, out):
        return function(jobs, cores, table, out)

    def returning(jobs, cores):
        return function(jobs, cores)

    made = rule if function is halves else returning
    made.sharing = True
    return made


@pytest.mark.parametrize("workload", [WORKLOAD, DEMANDING], ids=["plain", "demanding"])
@pytest.mark.parametrize("policy", [halves, half_returned, Halves()], ids=["rule", "function", "policy"])
def test_refused_in_the_same_words(policy, workload):
    """Half a core is refused by `allocate` and by `simulate`, with the same problem and the same hint."""
    name = workload.class_names[0]
    told = []
    for ask in (
        lambda: malleable.allocate(workload, [{"id": "x", "class": name, "remaining": 1.0}], 4, policy),
        lambda: malleable.simulate(workload, 4, policy, **RUN),
    ):
        with pytest.raises(PolicyError) as caught:
            ask()
        told.append((caught.value.problem.partition("core")[0], caught.value.hint))
    assert told[0] == told[1]
    assert "gave a job less than one" in told[0][0]
    assert "sharing = True" in told[0][1]


@pytest.mark.parametrize("workload", [WORKLOAD, DEMANDING], ids=["plain", "demanding"])
@pytest.mark.parametrize(
    "policy", [sharing(halves), sharing(half_returned), SharedHalves()], ids=["rule", "function", "policy"]
)
def test_accepted_from_those_who_say_so(policy, workload):
    """With `sharing = True`, as an attribute of a function or a class, every job runs at half speed."""
    name = workload.class_names[0]
    given = malleable.allocate(workload, [{"id": "x", "class": name, "remaining": 1.0}], 4, policy)
    assert given.cores.tolist() == [0.5]
    result = malleable.simulate(workload, 4, policy, warmup=0, **RUN)
    sizes = malleable.simulate(workload, 4, "fcfs", warmup=0, **RUN)
    # Never more than four jobs here, so each takes twice its size.
    assert result.cost.mean == pytest.approx(2.0 * sizes.cost.mean, rel=0.2)


@pytest.mark.filterwarnings("ignore:wham-fitted stepped back")
@pytest.mark.parametrize("policy", sorted(set(catalog.kinds("policies")) - {"auto", "equi", "wham_improved"}))
def test_most_policies_do_not_share(policy):
    """No other built-in policy gives a part of a core on one core or more, or says that it does."""
    assert not Policy.of(policy).sharing
    policy = DEAR if policy == "wham_fitted" else policy  # a fit for each workload

    @settings(max_examples=examples(2 if policy == DEAR else 6))
    @given(situations.situations("power", "amdahl", "rooftop", max_jobs=12), st.booleans())
    def check(situation, demanding):
        jobs, cores = situation
        cores = float(max(int(cores), 1))
        workload = jobs.workload
        if demanding:
            document = workload.to_dict()
            for row in document["classes"]:
                row["quiet"] = 1.0
            workload = Workload.from_dict(document)
        rows = [
            {"id": str(j), "class": workload.class_names[i], "remaining": x}
            for j, (i, x) in enumerate(zip(jobs.class_index, jobs.remaining, strict=True))
        ]
        try:
            out = malleable.allocate(workload, rows, cores, policy).cores
        except (InfeasibleError, UnstableError, UnsupportedError):
            return
        assert not np.any((out > 0.0) & (out < 1.0 - 1e-9))

    check()


def test_equi_shares():
    """EQUI says so, and does so when jobs outnumber cores."""
    assert Policy.of("equi").sharing
    rows = [{"id": str(j), "class": "only", "remaining": 1.0} for j in range(8)]
    assert malleable.allocate(WORKLOAD, rows, 4, "equi").cores.tolist() == [0.5] * 8
