"""The cost of a policy on a chain: three solvers, the exact chain, known costs."""

from __future__ import annotations

import numpy as np
import pytest
from test_markov_chain import dense

from malleable.contracts import Policy
from malleable.errors import UnsupportedError
from malleable.model import paper_workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import evaluate
from malleable.theory.markov_chain import solve
from support.chains import AMDAHL, POWER, exponential, paper_exponential, phases, workload


@pytest.mark.parametrize("name", ["wham", "wham-integer", "greedy", "equi"])
@pytest.mark.parametrize("load", [0.5, 1.5])
def test_three_solvers_agree(name, load):
    """LU, the sweeps of `theory.markov_chain`, and a dense solve of a chain built state by state."""
    made = paper_exponential().at(3, load)
    speeds = class_speeds(Policy.of(name), made, 3)
    mine = evaluate(made, 3, speeds, 5, lost="free")
    chain = solve(made.rates, phases(made), speeds, 5)
    jobs, levels = dense(made.rates, phases(made), speeds, 5)
    assert mine.cost == pytest.approx(chain.cost(made.holding_costs), rel=1e-10)
    assert mine.jobs == pytest.approx(jobs, rel=1e-9)
    assert mine.mass_at_limit == pytest.approx(levels[-1], rel=1e-9)


def test_phases_agree_with_the_exact_chain():
    """Hyperexponential sizes of the paper: the cost that `theory.markov_chain` and MODEL.md §6 have."""
    made = paper_workload(16)
    speeds = class_speeds(Policy.of("wham"), made, 16)
    chain = solve(made.rates, phases(made), speeds, 12)
    mine = evaluate(made, 16, speeds, 12, lost="free")
    assert mine.cost == pytest.approx(chain.cost(made.holding_costs), rel=1e-10)
    assert evaluate(made, 16, speeds, 14).cost == pytest.approx(0.2400331, rel=3e-4)


@pytest.mark.parametrize(
    ("name", "cost"),
    [("wham", 0.2400331), ("greedy", 0.2414230), ("equi", 0.2440912), ("wham-integer", 0.2402367)],
)
def test_class_speeds_give_the_known_costs(name, cost):
    """The policies' own rules, put into the exact chain, cost what MODEL.md §6 says on 16 cores."""
    made = paper_workload(16)
    chain = solve(made.rates, phases(made), class_speeds(Policy.of(name), made, 16), 20)
    assert chain.cost(made.holding_costs) == pytest.approx(cost, abs=2e-7)


def test_class_speeds_in_overload():
    """With more jobs than cores WHAM serves the highest c/E[X] first, EQUI and GREEDY share."""
    made = paper_exponential(2)
    counts = np.array([[2.0, 4.0], [5.0, 1.0], [4.0, 0.0]])
    by_index = class_speeds(Policy.of("wham"), made, 4)(counts)
    assert by_index.tolist() == [[1.0, 0.5], [0.8, 0.0], [1.0, 0.0]]
    for name in ("equi", "greedy"):
        assert class_speeds(Policy.of(name), made, 4)(counts)[0] == pytest.approx([4 / 6, 4 / 6])


def test_rules_that_need_more_than_counts_are_refused():
    """Pools, orders by size, and ties between classes that only arrivals break are not in the counts."""
    for name in ("fw-cam:beta=0.8", "srpt", "hesrpt"):
        with pytest.raises(UnsupportedError):
            class_speeds(Policy.of(name), paper_workload(64), 64)
    alike = workload((1.0, exponential(1.0), POWER, 1.0), (1.0, exponential(1.0), AMDAHL, 1.0))
    speeds = class_speeds(Policy.of("wham-integer"), alike, 3)
    assert speeds(np.array([[1.0, 1.0]])) == pytest.approx(np.array([[1.0, 1 / 0.6]]))
    with pytest.raises(UnsupportedError, match="order of arrival"):
        speeds(np.array([[2.0, 2.0]]))
