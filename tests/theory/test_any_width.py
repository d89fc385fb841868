"""Equations in the counts of jobs are refused for jobs that cannot have any width."""

from __future__ import annotations

import pytest

import malleable
from malleable.contracts import Policy
from malleable.errors import UnsupportedError
from malleable.model import Workload
from malleable.policies.wham_discounted import outlook
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import Process
from malleable.theory.fluid import Fluid
from malleable.theory.optimal_policy import optimum
from support import strategies as gen

POWER = {"kind": "power", "exponent": 0.5}
WHAM = Policy.of("wham")
QUESTIONS = {
    "fluid": lambda workload: Fluid(workload, WHAM, 4),
    "mean field": lambda workload: malleable.mean_field(workload, 4),
    "chain": lambda workload: class_speeds(WHAM, workload, 4),
    "process": lambda workload: Process(workload, 4, 10),
    "optimum": lambda workload: optimum(workload, 4),
}


def workload(**keys):
    """A plain class, and one that demands what the keys say."""
    rows = [gen.job_class("plain", 0.5, 1.0, POWER, 1.0), gen.job_class("other", 0.5, 1.0, POWER, 1.0) | keys]
    return Workload.from_dict({"classes": rows})


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "keys",
    [
        {"widths": "whole"},
        {"shape": "moldable"},
        {"shape": "rigid", "width": 2},
        {"resize": {"pause": 0.1}},
        {"resize": {"work": 0.1}},
        {"quiet": 1.0},
    ],
)
def test_refused(keys, question):
    """Each such question names the class and says what to do instead."""
    with pytest.raises(UnsupportedError, match="class 'other': its jobs cannot have any width") as caught:
        QUESTIONS[question](workload(**keys))
    assert "or simulate" in caught.value.hint


def test_what_is_expected_of_the_market_needs_no_widths():
    """The outlook of wham-discounted and wham-steady is that of the same jobs of any width."""
    assert outlook(workload(widths=[1, 4], resize={"pause": 0.1}), 4) == outlook(workload(), 4)
