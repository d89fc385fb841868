"""`auto`: what it chooses, when it stays with WHAM, and where it runs."""

from __future__ import annotations

import numpy as np
import pytest

from malleable import Jobs, allocate, api, compare, simulate
from malleable.contracts import Policy
from malleable.errors import UnsupportedError
from malleable.live.core.scheduler import Scheduler
from malleable.model import Workload, paper_workload
from malleable.policies import auto as auto_module
from malleable.policies.auto import Auto, Choice
from malleable.policies.base import racing
from malleable.policies.clearing import Clearing
from support import strategies as gen

ROWS = [
    gen.job_class("cheap", 1.0, 1.0, {"kind": "amdahl", "sequential": 0.05}, 0.3),
    gen.job_class("dear", 1.0, 1.0, {"kind": "amdahl", "sequential": 0.05}, 3.0),
]
MACHINE = Workload.from_dict({"classes": ROWS}).at(2, 0.6)


@pytest.fixture
def short(monkeypatch):
    """Races of a fifth of the usual length, each of them run."""
    monkeypatch.setattr(racing, "FEWEST", 320)
    monkeypatch.setattr(auto_module, "SECONDS", 0.1)
    monkeypatch.setattr(auto_module, "MOST_MOMENTS", 10_000)
    monkeypatch.setattr(auto_module, "_chosen", auto_module._choose)


class TestChoice:
    """What is chosen, and why."""

    def test_the_choice_is_cheaper_than_wham_on_other_jobs(self):
        """On two cores with near-linear speedups it is a tenth cheaper than WHAM on jobs of another seed."""
        found = compare(MACHINE, 2, ["wham", "auto"], jobs=20_000, seed=5)
        assert found.differences[0].high < -0.1 * found.results[0].cost.mean
        assert "% cheaper than wham" in " ".join(found.results[1].notes)

    @pytest.mark.usefixtures("short")
    def test_it_has_one_answer(self):
        """The same workload and number of cores have the same choice, with the same numbers."""
        assert Auto().choice(MACHINE, 2) == Auto().choice(MACHINE, 2)

    @pytest.mark.usefixtures("short")
    def test_who_would_lose_elsewhere_is_refused(self, monkeypatch):
        """If every policy lost at another load, it would be WHAM, and the reason would name them."""
        monkeypatch.setattr(auto_module, "LOSS", -10.0)
        found = Auto().choice(MACHINE, 2)
        assert found.name == "wham"
        assert found.why.count("would lose at a higher load") == auto_module.SECOND_CHOICES

    @pytest.mark.parametrize(
        ("workload", "cores", "why"),
        [(MACHINE.at(2, 1.0), 2, "load is 1"), (paper_workload(2048, 0.9), 2048, "jobs present")],
    )
    def test_without_a_race_it_is_wham(self, workload, cores, why):
        """At load 1, and with hundreds of jobs present at once, there is no race."""
        found = Auto().choice(workload, cores)
        assert (found.name, found.trials) == ("wham", ())
        assert why in found.why

    @pytest.mark.usefixtures("short")
    def test_unknown_sizes_are_tried_as_unknown(self):
        """A run with unknown sizes takes what wins there; policies that need the sizes do not race."""
        found = Auto(sizes="unknown").choice(MACHINE, 2)
        assert {name for name, *_ in found.trials} == {"wham", *auto_module.UNKNOWN}
        result = simulate(MACHINE, 2, "auto", jobs=2_000, sizes="unknown")
        assert f"auto is {found.name} here" in " ".join(result.notes)

    @pytest.mark.usefixtures("short")
    def test_steadiness_counts_where_resizes_cost(self):
        """`wham-steady` races where moves are not free, and there is no fit, which knows nothing of them."""
        rows = [{**row, "resize": {"pause": 0.05}} for row in ROWS]
        found = Auto().choice(Workload.from_dict({"classes": rows}).at(2, 0.6), 2)
        names = {name for name, *_ in found.trials}
        assert "wham-steady" in names
        assert not any(name.startswith("wham-fitted") for name in names)


class TestWhereItRuns:
    """It is the chosen policy in every respect."""

    def test_allocate_is_that_of_the_choice(self, monkeypatch):
        """Widths, prices and notes are those of the policy chosen."""
        chosen = Choice("clearing:order=best", "of a test")
        monkeypatch.setattr(auto_module, "_chosen", lambda *_: chosen)
        jobs = Jobs.of(MACHINE, [0, 1, 1], [1.0, 2.0, 0.5])
        mine, its = (allocate(MACHINE, jobs, 2, policy) for policy in ("auto", "clearing:order=best"))
        np.testing.assert_array_equal(mine.cores, its.cores)
        assert mine.price == its.price
        assert api.policy_notes(MACHINE, 2, "auto") == ("auto is clearing:order=best here: of a test",)

    def test_the_mean_field_is_that_of_the_choice(self, monkeypatch):
        """A chosen class rule has its mean field, a chosen rule on single jobs none, as without `auto`."""
        monkeypatch.setattr(auto_module, "_chosen", lambda *_: Choice("wham", ""))
        workload = paper_workload(64, 0.3)
        found, wham = (api.mean_field(workload, 64, policy=name, starts=0) for name in ("auto", "wham"))
        assert found.cost == wham.cost
        monkeypatch.setattr(auto_module, "_chosen", lambda *_: Choice("clearing", ""))
        with pytest.raises(UnsupportedError, match="not a class rule"):
            api.mean_field(workload, 64, policy="auto", starts=0)

    def test_a_live_machine_knows_no_rates(self):
        """Live it is `clearing` at the price that cores have had, and goes by the name it was given."""
        scheduler = Scheduler(MACHINE, 2, policy="auto")
        assert scheduler.machine.policy == Clearing(order="best")
        assert scheduler.policy_name == "auto"

    def test_knowing_fills_in_what_is_not_said(self):
        """The option says whether sizes are known; without it the run does."""
        assert Auto().knowing(sizes=False) == Auto(sizes="unknown")
        assert Auto(sizes="known").knowing(sizes=False) == Auto(sizes="known")
        assert Policy.of("wham").knowing(sizes=False) == Policy.of("wham")
