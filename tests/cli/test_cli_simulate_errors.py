"""What `malleable simulate` and `malleable compare` say of wrong options and policies."""

from __future__ import annotations

import pytest

from support.cli_checks import assert_one_line
from support.cli_runs import MODERATE
from support.shell import malleable

pytestmark = pytest.mark.usefixtures("with_policies")

BAD_OPTIONS = {
    "--jobs 0": ["jobs must be a whole number of at least 1, got 0"],
    "--jobs -5": ["jobs", "-5"],
    "--jobs many": ["jobs must be a whole number, got 'many'", "--jobs 1e6"],
    "--jobs 1.5": ["'1.5'"],
    "--jobs nan": ["'nan'"],
    "--jobs inf": ["'inf'"],
    "--precision 0": ["precision must lie between 0 and 1"],
    "--precision 2": ["0.01 means"],
    "--precision high": ["precision must be a number, got 'high'", "--precision 0.01"],
    "--seed -1": ["seed"],
    "--seed x": ["seed must be a whole number"],
    "--replications 0": ["replications"],
    "--confidence 1": ["confidence"],
    "--warmup -1": ["warmup"],
    "--warmup 4000": ["warm-up of 4000 jobs leaves nothing"],
    "--load half": ["load must be a number"],
    "--load 1.2": ["load", "1.2", "20 cores", "--allow-unstable"],
}


@pytest.mark.parametrize(("option", "words"), BAD_OPTIONS.items(), ids=BAD_OPTIONS.keys())
@pytest.mark.parametrize("verb", ["simulate", "compare --policies wham"])
def test_bad_options(verb, option, words):
    name, value = option.split()
    assert_one_line(malleable(*verb.split(), *MODERATE, f"{name}={value}"), *words)


@pytest.mark.parametrize("cores", ["0", "-1", "many", "8.5", "inf"])
@pytest.mark.parametrize("verb", ["simulate", "compare --policies wham"])
def test_bad_cores(verb, cores):
    assert_one_line(malleable(*verb.split(), "paper", f"--cores={cores}"), "cores")


@pytest.mark.parametrize("verb", ["simulate --policy", "compare --policies"])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("whan", ["did you mean 'wham'"]),
        ("fw-cam:beta=2", ["beta"]),
        ("mine.py:Absent", ["'Absent'"]),
        ("mine.py:too_much", ["mine.py:too_much", "more than 16 cores", "of class-", "cores 16, 16"]),
        ("mine.py:nothing_known", ["mine.py:nothing_known", "NaN", "of class-"]),
        ("mine.py:negative", ["mine.py:negative", "negative", "cores -1"]),
    ],
)
def test_bad_policies(verb, policy, words):
    """A policy that breaks the rules is named, with the state and the numbers."""
    done = malleable(*verb.split(), policy, *MODERATE)
    # A rule that cannot be compiled is worth a warning, and runs.
    errors = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
    assert_one_line(done._replace(err="\n".join(errors)), *words)


@pytest.mark.parametrize("spread", [[], ["--replications", "2"]], ids=["alone", "spread"])
@pytest.mark.parametrize(
    ("policy", "line"), [("raises", "return [1 / 0]"), ("Broken", 'raise KeyError("nothing here")')]
)
def test_policy_that_raises(policy, line, spread, capfd):
    """A policy's own error: its traceback from the user's code on, then one line; wherever it ran."""
    done = malleable("simulate", *MODERATE, "--policy", f"mine.py:{policy}", *spread)
    text = "\n".join(row for row in done.err.splitlines() if not row.startswith("warning: "))
    assert done.status == 1
    assert done.out == ""
    assert text.startswith("Traceback (most recent call last):\n")
    assert line in text
    assert "src/malleable" not in text
    assert [row for row in text.splitlines() if row.startswith("error: ")] == [
        f"error: the policy mine.py:{policy} raised "
        + {"raises": "ZeroDivisionError: division by zero", "Broken": "KeyError: 'nothing here'"}[policy]
    ]
    capfd.readouterr()


@pytest.mark.parametrize("baseline", ["knee", "whan"])
def test_unknown_baseline(baseline):
    assert_one_line(malleable("compare", *MODERATE, "--policies", "wham", "--baseline", baseline), baseline)


def test_nothing_to_compare():
    assert_one_line(malleable("compare", *MODERATE, "--policies", ","), "nothing to compare")
