"""Errata: every error is shown by a number, and a paper without it would not be accused."""

from __future__ import annotations

import pytest

from malleable.paper.contracts import FULL, NORMAL, QUICK
from malleable.paper.experiments import e17_errata as e17
from support.paper_checks import broken, check_cells, check_findings, computed, verdict


@pytest.fixture(scope="module")
def values():
    return computed(e17)


def test_cells_and_findings_fit(values):
    """Cells survive files, columns are of one length, and all errors are shown."""
    check_cells(e17, (QUICK, NORMAL, FULL))
    found = e17.findings(QUICK, values)
    check_findings(found)
    assert [one.statement for one in found.verdicts if not one.holds] == []
    assert not found.of_the_paper


def test_the_numbers(values):
    """Base n = 112/15; indices .00243 and .00162; the queueing bound from 10¹⁰ (β = .9) to 10¹⁶ (β = .76)."""
    assert values["base_cores"]["cores"] == pytest.approx(112 / 15)
    assert values["single_arm"]["index"] == pytest.approx(0.00243, abs=5e-6)
    assert values["single_arm"]["held_index"] == pytest.approx(0.00162, abs=5e-6)
    assert values["linear_limit"]["effective"][-1] == pytest.approx(0.4995, abs=5e-5)
    orders = {beta: round(n, -9) for beta, n in values["li_goldberg"].items()}
    assert 1e10 < orders["0.9"] < 1e11
    assert 5e13 < orders["0.8"] < 5e14
    assert 5e15 < orders["0.76"] < 5e16


@pytest.mark.parametrize(
    ("start", "key", "name", "value"),
    [
        ("Definition of WHAM, threshold", "threshold", "dear_above", 1.0),
        ("Definition of WHAM, N = n", "as_many_jobs_as_cores", "least", 1.0),
        ("Lemma on the single arm", "single_arm", "held_cost", 0.0),
        ("Proof that WHAM is stable", "stability", "wham", 1.0),
        ("Model, the bullet", "concavity", "slopes", [0.5, 0.1]),
    ],
)
def test_what_is_no_error_is_not_called_one(values, start, key, name, value):
    """Numbers under which the paper would be right turn the verdict."""

    def right(v):
        v[key][name] = value

    assert verdict(e17.findings(QUICK, broken(values, right)), start).holds is False
