"""The walks of CONTRIBUTING are true: each passes its modules in the order of the list.

A walk is one command on a tiny example. What counts is the order in which modules are first entered by a
call; a module of the list that is not entered, or entered before the one above it, makes the list wrong.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support.shell import malleable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TINY = ("paper", "--cores", "4", "--load", "0.25", "--jobs", "300", "--interpreted")
COMMANDS = {
    "simulate": ("simulate", *TINY),
    "allocate": ("allocate", "paper", "--cores", "4", "--jobs", "jobs.csv"),
    "paper --quick": ("paper", "--quick", "--only", "e01_speedups", "--workers", "1"),
    "A function of yours": ("simulate", *TINY, "--policy", "mine.py:one_each"),
}


def walks() -> dict[str, list[str]]:
    """Each walk's title with the modules of its list."""
    section = re.search(r"^## The four walks\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    parts = re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", section[1], re.MULTILINE | re.DOTALL)
    return {
        title.replace("`", "").removeprefix("malleable "): re.findall(
            r"^\d+\. `([\w/]+)`", body, re.MULTILINE
        )
        for title, body in parts
    }


def first_visits(*command: str) -> list[str]:
    """The modules of ours that a command enters, in the order of their first calls."""
    seen: dict[str, None] = {}

    def enter(frame, event, _):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("malleable.") and name not in seen and not imports(frame):
            seen[name] = None

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        done = malleable(*command)
    finally:
        sys.setprofile(before)
    assert done.status == 0, done.err
    return [name.partition(".")[2].replace(".", "/") for name in seen]


def imports(frame) -> bool:
    """Whether a call belongs to the import of a module of ours, such as the body of a class."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"].startswith("malleable."):
            return True
        frame = frame.f_back
    return False


def test_there_are_four_walks():
    """Every list of the page is walked here, and every list says where each of its modules is."""
    found = walks()
    assert set(found) == set(COMMANDS)
    for modules in found.values():
        assert len(modules) >= 5
        assert len(set(modules)) == len(modules)
        for module in modules:
            place = ROOT / "src" / "malleable" / module
            assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file(), module


@pytest.mark.parametrize("title", COMMANDS)
def test_a_walk_passes_its_modules_in_order(title, tmp_path, monkeypatch):
    """The modules of the list are first entered in the order of the list."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("id,class,remaining\na,class-1,0.1\nb,class-2,0.5\n")
    Path("mine.py").write_text("def one_each(jobs, cores):\n    return [1.0] * len(jobs)\n")
    visited, wanted = first_visits(*COMMANDS[title], "--json"), walks()[title]
    assert [module for module in visited if module in wanted] == wanted
