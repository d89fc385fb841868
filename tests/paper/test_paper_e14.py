"""Experiment 14: a map of policies over random workloads."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.paper import simulation_cells
from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e14_map_of_policies as e14
from malleable.paper.experiments.e02_converge.cells import cells as e02_cells
from malleable.paper.experiments.e14_map_of_policies.workloads import SCVS, random_workload, traits
from support.paper_checks import broken, check_cells, check_findings, computed, verdict

BEST, LITTLE, HEAVY = "WHAM is cheaper", "Where a rival is cheaper", "At loads of"
IMPROVED, REFINED = "The improved WHAM", "Where it applies"


def made_up(rows=40, lead=0.1, error=0.001):
    """Values of two cells: every rival dearer by `lead`, and predictions off by `error`."""
    rng = np.random.default_rng(1)

    def row(k):
        load = float(rng.uniform(0.1, 0.9))
        return {
            "number": k, "load": load, "scv": SCVS[k % 6], "spread": 1.0 + k % 25, "speedups": "power usl",
            "costs": {"wham": [1.0, 0.0005], "equi": [1.0 + lead, 0.01], "greedy": [1.0 + lead, 0.01]},
            "differences": {"wham": [0.0, 0.0], "equi": [lead, 0.001], "greedy": [lead, 0.001]},
            "jobs": 1000, "device": "",
        }  # fmt: skip

    told = {p: {"limit": 1.0, "refined": 1.0 + error, "applies": True} for p in ("wham", "equi", "greedy")}
    return {
        "simulated-2-4": [row(k) for k in range(rows)],
        "simulated-3-64": [row(k) for k in range(rows)],
        "predicted-2-4": [told] * rows,
        "predicted-3-64": [told] * rows,
        "improved-2-4": [
            {**row(0), "costs": {"wham": [1.0, 0.01], "wham-improved": [0.98, 0.01]},
             "differences": {"wham": [0.0, 0.0], "wham-improved": [-0.02, 0.001]}}
        ],
    }  # fmt: skip


def test_cells(monkeypatch):
    """Cells have names and arguments that files can hold; with a GPU, full effort has 10,000 workloads."""
    monkeypatch.setenv(simulation_cells.ENGINE_VARIABLE, "cpu")
    check_cells(e14, (QUICK, NORMAL, FULL))

    def workloads(effort):
        return sum(c.arguments["count"] for c in e14.cells(effort) if c.key.startswith("simulated"))

    assert workloads(QUICK) < workloads(NORMAL) < workloads(FULL) < 2000
    monkeypatch.setenv(simulation_cells.ENGINE_VARIABLE, "gpu")
    assert workloads(FULL) >= 10_000
    assert workloads(NORMAL) < 100


def test_narrow_intervals_where_there_is_a_gpu(monkeypatch):
    """Figures 2 and 3 at full effort: ±0.01 % on a GPU, ±0.05 % without; `auto` asks whether there is one."""

    def precisions(effort):
        return {c.arguments.get("precision") for c in e02_cells(effort) if "precision" in c.arguments}

    monkeypatch.setenv(simulation_cells.ENGINE_VARIABLE, "cpu")
    assert precisions(FULL) == {5e-4}
    monkeypatch.setenv(simulation_cells.ENGINE_VARIABLE, "gpu")
    assert precisions(FULL) == {1e-4}
    assert 1e-4 not in precisions(NORMAL)
    monkeypatch.setenv(simulation_cells.ENGINE_VARIABLE, "auto")
    for there in (True, False):
        monkeypatch.setattr(simulation_cells, "_there_is_a_gpu", lambda there=there: there)
        assert precisions(FULL) == ({1e-4} if there else {5e-4})


def test_random_workloads():
    """A workload depends on its name alone, and has the traits that it is sorted by."""
    assert random_workload(3, 16, 7) == random_workload(3, 16, 7)
    assert random_workload(3, 16, 7) != random_workload(3, 16, 8)
    for classes in (2, 3, 4):
        for number in range(20):
            made = random_workload(classes, 8, number)
            found = traits(made, 8)
            assert len(made.classes) == classes
            assert 0.1 <= found["load"] <= 0.9
            assert found["scv"] in SCVS
            assert 1.0 <= found["spread"] <= 30.0


def test_everything_fits_together():
    """Quick cells computed on the CPU make findings; so do values with cells that failed."""
    values = computed(e14)
    check_findings(e14.findings(QUICK, values))
    spoilt = {**made_up(), "simulated-3-64": {"error": "no"}, "predicted-2-4": {"error": "no"}}
    check_findings(e14.findings(FULL, spoilt))


def test_a_clear_win_holds():
    """Rivals 10 % dearer everywhere and predictions right to 0.1 %: all verdicts hold."""
    findings = e14.findings(FULL, made_up())
    check_findings(findings)
    assert [v.statement for v in findings.verdicts if v.holds is not True] == []


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_verdicts_turn_where_a_rival_wins(share):
    """EQUI cheaper by 8 % on some workloads of high load: too much, and if they are many, too often."""

    def cheaper(values):
        rows = [row for key in ("simulated-2-4", "simulated-3-64") for row in values[key]]
        heavy = sorted(rows, key=lambda row: -row["load"])
        for row in heavy[: max(1, round(share * len(rows)))]:
            row["differences"]["equi"] = [-0.08, 0.001]

    findings = e14.findings(FULL, broken(made_up(), cheaper))
    assert verdict(findings, LITTLE).holds is False
    assert verdict(findings, HEAVY).holds is False
    assert verdict(findings, BEST).holds is (share < 0.1)
    assert "equi" in verdict(findings, LITTLE).measured.lower()


def test_intervals_that_do_not_decide():
    """Leads within the noise are open: nobody has won."""

    def noisy(values):
        for key in ("simulated-2-4", "simulated-3-64"):
            for row in values[key]:
                row["differences"]["equi"] = [0.001, 0.5]

    findings = e14.findings(FULL, broken(made_up(), noisy))
    assert {verdict(findings, start).holds for start in (BEST, LITTLE, HEAVY)} == {None}


def test_verdicts_on_improvement_and_prediction_turn():
    """An improved WHAM that is dearer somewhere, and predictions off by 3 %, fail."""

    def worse(values):
        values["improved-2-4"][0]["differences"]["wham-improved"] = [0.02, 0.001]

    findings = e14.findings(FULL, broken(made_up(error=0.03), worse))
    assert verdict(findings, IMPROVED).holds is False
    assert verdict(findings, REFINED).holds is False
    assert verdict(e14.findings(FULL, made_up(error=0.0105)), REFINED).holds is None
