"""What is compiled before the first cell: every rule that cells ask for, once, the longest first."""

from __future__ import annotations

from malleable.engine.compiling import _compiled_once, code_size
from malleable.paper.contracts import Cell
from malleable.paper.precompile import rules_of
from malleable.policies.rules.market_rules import greedy_jobs_rule
from malleable.policies.srpt import srpt


def asking(**arguments):
    return Cell("cell", print, arguments)


def test_every_rule_once():
    """Policies are found wherever arguments name them; those that share a rule are one, by the plain name."""
    cells = [
        asking(policies=["wham", "knee:alpha=0.1"], workload={"name": "paper"}),
        asking(policy="knee", nested={"inside": [{"policy": "lpf"}, 3.0]}),
        asking(policy="wham", title="fair play"),
    ]
    assert sorted(rules.policies for rules in rules_of(cells)) == [("knee",), ("lpf",), ("wham",)]


def test_order():
    """Class rules share a kernel and go together, first; then the longest rule that follows one job each."""
    found = rules_of([asking(policies=["srpt", "greedy:weight=cmu", "equi", "wham", "wham-discounted"])])
    assert [rules.policies for rules in found] == [
        ("wham", "equi"),
        ("wham-discounted",),
        ("greedy:weight=cmu",),
        ("srpt",),
    ]


def test_nothing_to_compile():
    """No policy, none with a plan, or none at all: nothing to do."""
    assert rules_of([asking(cores=4, policy="no such")]) == []
    assert rules_of([asking(policy="fw-cam:beta=0.8")]) != []
    assert rules_of([asking(policy="fw-cam:beta=0.99999")]) == []
    assert rules_of([]) == []


def test_afterwards_all_is_there():
    """Who runs the policy afterwards finds the rule and the kernel compiled."""
    (rules,) = rules_of([asking(policy="srpt")])
    rules.compile()
    known = _compiled_once.cache_info().misses
    rules.compile()
    assert _compiled_once.cache_info().misses == known
    assert "srpt" in rules.label


def test_extent_counts_helpers():
    """A rule that does all its work in helpers is as long as they are."""
    assert code_size(greedy_jobs_rule) > 4 * len(greedy_jobs_rule.__code__.co_code)
    assert code_size(greedy_jobs_rule) > code_size(srpt)
