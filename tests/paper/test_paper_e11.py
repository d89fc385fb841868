"""The refined mean field: quick cells agree with known numbers, and verdicts turn when numbers do."""

from __future__ import annotations

import functools

import pytest

from malleable.contracts import Policy
from malleable.model import Workload, paper_workload
from malleable.paper.contracts import EFFORTS, NORMAL, QUICK
from malleable.paper.experiments import e11_refined
from malleable.paper.experiments.e11_refined.cells import WORKLOADS, both
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import evaluate
from support.paper_checks import broken, check_cells, check_findings, computed, verdict


@functools.cache
def values():
    return computed(e11_refined)


def findings(change=lambda _: None, effort=QUICK, of=None):
    return e11_refined.findings(effort, broken(of or values(), change))


@functools.cache
def made_up():
    """Values of normal effort as they would be if cost(n) were limit + C/n + D/n² exactly."""
    found = {}
    for cell in e11_refined.cells(NORMAL):
        if cell.key.startswith("simulated"):
            found[cell.key] = {"error": "not simulated here"}
            continue
        asked = cell.arguments
        n, limit, C = asked["cores"], {"wham": 0.16, "greedy": 0.162, "equi": 0.18}[asked["policy"]], 1.4
        found[cell.key] = {
            "cores": n, "load": asked["load"], "limit": limit, "jobs": 1.0, "coefficient": C,
            "refined": limit + C / n, "applies": True, "reason": "", "exact": limit + C / n + 0.3 / n**2,
            "truncation": 0.0, "overload": 0.0,
        }  # fmt: skip
    return found


def test_cells_are_well_formed():
    """Every effort has cells with their own keys and plain arguments."""
    check_cells(e11_refined, EFFORTS.values())


def test_findings_are_well_formed():
    """Figures, tables and verdicts fit together, for real and for made-up values."""
    check_findings(findings())
    check_findings(findings(effort=NORMAL, of=made_up()))


@pytest.mark.parametrize(
    ("policy", "cost"), [("wham", 0.2400331), ("greedy", 0.2414230), ("equi", 0.2440912)]
)
def test_exact_costs_of_the_paper(policy, cost):
    """On 16 cores the exact costs are those of MODEL.md §6."""
    value = values()[f"paper-{policy}-16"]
    assert value["exact"] == pytest.approx(cost, abs=2e-7)
    assert value["truncation"] < 1e-8


def test_predictions_are_the_known_ones():
    """WHAM ≈ .1578484984 + 1.425163/n, GREEDY .1596026 + 1.40346/n, EQUI .1766143 + .99923/n."""
    known = {"wham": (0.1578484984, 1.425163), "greedy": (0.1596026, 1.40346), "equi": (0.1766143, 0.99923)}
    for policy, (limit, coefficient) in known.items():
        value = values()[f"paper-{policy}-16"]
        assert value["limit"] == pytest.approx(limit, abs=1e-7)
        assert value["coefficient"] == pytest.approx(coefficient, abs=1e-5)
        assert value["refined"] == pytest.approx(limit + coefficient / 16, abs=1e-6)


def test_exact_costs_by_another_solver():
    """With exponential sizes, a direct solution on a shorter, charged chain gives the same costs."""
    document = WORKLOADS["exponential"][1]
    for policy in ("wham", "greedy"):
        made = Workload.from_dict(document).at(16, 0.25)
        other = evaluate(made, 16, class_speeds(Policy.of(policy), made, 16), 16)
        assert values()[f"exponential-{policy}-16"]["exact"] == pytest.approx(other.cost, rel=1e-6)


def test_both_divides_by_the_jobs_let_in():
    """Little's law is for those let in; with this chain the difference is below what is printed."""
    value = both("paper", "equi", 8, 0.25)
    made = paper_workload(8)
    other = evaluate(made, 8, class_speeds(Policy.of("equi"), made, 8), 18)
    assert value["exact"] == pytest.approx(other.cost, rel=1e-6)


def test_verdicts_on_made_up_values():
    """A cost that is limit + C/n + D/n² makes the first four verdicts hold."""
    found = findings(effort=NORMAL, of=made_up())
    for start in (
        "n·(cost",
        "The error of",
        "On any number",
        "Where the refined",
        "The refined mean field puts",
    ):
        assert verdict(found, start).holds is True, start
    for start in ("Simulated costs", "From 256"):
        assert verdict(found, start).holds is None, start


def changed(start, change):
    return verdict(findings(change, NORMAL, made_up()), start).holds


def test_a_wrong_coefficient_is_noticed():
    """Five percent more in the coefficient: exact costs do not lead there, and errors fall like 1/n."""

    def wrong(values):
        for key, value in values.items():
            if key.startswith("exponential-wham"):
                value["coefficient"] *= 1.05
                value["refined"] = value["limit"] + value["coefficient"] / value["cores"]

    assert changed("n·(cost", wrong) is False
    assert changed("The error of", wrong) is False


def test_a_correction_that_does_not_help_is_noticed():
    """A refined cost farther off than the mean field turns the verdict."""

    def worse(values):
        value = values["paper-equi-32"]
        value["refined"] = value["exact"] + 2.0 * (value["exact"] - value["limit"])

    assert changed("On any number", worse) is False


def test_a_flag_that_lies_is_noticed():
    """An error of three percent is allowed only where the result says that it does not apply."""

    def off(values):
        values["load-0.5"]["refined"] *= 1.03

    def warned(values):
        off(values)
        values["load-0.5"]["applies"] = False

    assert changed("Where the refined", off) is False
    assert changed("Where the refined", warned) is True


def test_a_wrong_order_is_noticed():
    """A prediction that makes GREEDY cheaper than WHAM turns the verdict."""

    def swap(values):
        values["exponential-greedy-64"]["refined"] = 0.1

    assert changed("The refined mean field puts", swap) is False


def test_simulations_that_disagree_are_noticed():
    """Simulated costs beside the exact ones and the predictions; far off, both verdicts fail."""
    assert verdict(findings(), "Simulated costs").holds is True
    assert verdict(findings(), "From 256").holds is True

    def off(values):
        for n in (16, 256):
            cost = values[f"simulated-{n}"]["results"]["wham"]["cost"]
            for end in cost:
                cost[end] *= 1.2

    assert verdict(findings(off), "Simulated costs").holds is False
    assert verdict(findings(off), "From 256").holds is False


def test_few_points_decide_nothing():
    """A quick look has too few cores for rates and limits, and says so."""
    for start in ("n·(cost", "The error of"):
        assert verdict(findings(), start).holds is None
