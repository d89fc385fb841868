"""What policies are called, and their colours: the same in every figure and table of the page."""

from __future__ import annotations

from typing import NamedTuple


class Label(NamedTuple):
    """A name, and a number in the palette."""

    name: str
    colour: int | None = None
    """None where a policy is drawn in no figure as a series of its own."""


RIVALS = ("equi", "greedy")
"""What the paper's figures compare WHAM with."""
POLICIES = {
    "wham": Label("WHAM", 0),
    "wham-integer": Label("WHAM on whole cores", 8),
    "wham-discounted": Label("discounted WHAM"),
    "auto": Label("the best by trial (auto)", 17),
    "fw-cam": Label("FW-CAM", 1),
    "equi": Label("EQUI", 2),
    "greedy": Label("GREEDY", 3),
    "greedy:weight=mu": Label("GREEDY, w = μ", 11),
    "greedy:weight=c": Label("GREEDY, w = c", 4),
    "greedy:weight=cmu": Label("GREEDY, w = cμ", 12),
    "greedy:weight=c/x": Label("GREEDY, w = c/x", 5),
    "greedy-star": Label("GREEDY*"),
    "hell": Label("HELL", 13),
    "knee": Label("KNEE", 14),
    "hesrpt": Label("A-heSRPT", 7),
    "pollux": Label("Pollux", 15),
    "sia": Label("Sia", 10),
    "lpf": Label("LPF", 9),
    "srpt": Label("SRPT, one core each"),
    "srpt-all": Label("SRPT, all cores"),
    "fcfs": Label("FCFS, one core each"),
    "inelastic-first": Label("Inelastic-First"),
    "elastic-first": Label("Elastic-First"),
}


def label(policy: str) -> Label:
    """The label of a policy, or of its kind if it has none with these options."""
    return POLICIES.get(policy) or POLICIES[policy.partition(":")[0]]
