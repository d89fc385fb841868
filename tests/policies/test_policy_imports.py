"""A policy's file needs one module of the package, `malleable.policies.base`; a speedup's needs its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from malleable.policies import base

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"```python\n# file: (\S+)\n(.*?)```", re.DOTALL)
IMPORT = re.compile(r"^(?:from|import) (malleable[\w.]*)", re.MULTILINE)
POLICIES = [
    (page, name)
    for page in ("docs/how-to/write-a-policy.md", "docs/how-to/add-your-own.md", "CONTRIBUTING.md")
    for name, text in FILE.findall((ROOT / page).read_text(encoding="utf-8"))
    if "Policy" in text or "JobRule" in text or "jobs, cores, table, out" in text
]


@pytest.mark.parametrize(("page", "name"), POLICIES)
def test_policies_of_the_pages(page, name):
    """The policies that the pages show import nothing else of the package."""
    text = dict(FILE.findall((ROOT / page).read_text(encoding="utf-8")))[name]
    assert set(IMPORT.findall(text)) <= {"malleable.policies.base"}


def test_the_pages_show_policies():
    """The search above finds the examples of all three pages."""
    assert len({page for page, _ in POLICIES}) == 3


def test_the_speedup_of_the_page():
    """The family in CONTRIBUTING imports from `malleable.speedups.base` alone."""
    text = dict(FILE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))["logarithmic.py"]
    assert set(IMPORT.findall(text)) == {"malleable.speedups.base"}


def test_what_a_rule_needs_is_there():
    """All columns, disciplines and readers of speedups that the docstring promises have a name there."""
    columns = {"CLASS", "REMAINING", "AGE", "WEIGHT", "HELD", "SIZE", "RESTARTS", "IDENTITY"}
    readers = {"encode", "speed", "table_of"}
    assert columns | readers | {"SHARE", "INDEX", "FIFO", "POOLS", "Policy", "JobRule"} <= set(vars(base))
