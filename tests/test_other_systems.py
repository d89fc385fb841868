"""Where there is no Linux: what cannot work says so in one line, and everything else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRETEND = """
import os, sys
import numba, numpy, scipy.optimize  # these look at the system as it really is
sys.platform = {system!r}
for name in ("sched_getaffinity", "sched_setaffinity"):
    delattr(os, name)
from malleable.cli import main
sys.argv = ["malleable", *{words!r}]
main()
"""


def on(system, *words):
    return subprocess.run(
        [sys.executable, "-c", PRETEND.format(system=system, words=words)],
        capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", [["status"], ["serve"], ["submit", "--", "true"]], ids=lambda w: w[0])
def test_live_needs_linux(words):
    """The verbs of the broker say in one line that they need Linux, and what works instead."""
    found = on("darwin", *words)
    assert found.returncode == 1
    assert found.stderr.startswith(
        "error: malleable.live needs Linux, and this is darwin\nhint: everything else"
    )
    assert len(found.stderr.splitlines()) <= 3


@pytest.mark.parametrize(
    "words",
    [
        ["bound", "paper", "--cores", "64", "--load", "0.25"],
        ["simulate", "paper", "--cores", "4", "--load", "0.25", "--jobs", "2000", "--replications", "2"],
    ],
    ids=lambda w: w[0],
)
def test_the_rest_does_not(words):
    """Bounds and simulations with several processes work on a machine without CPU affinity."""
    found = on("darwin", *words)
    assert found.returncode == 0, found.stderr
    assert "0." in found.stdout
