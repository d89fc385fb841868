"""The walks of CONTRIBUTING are true: each goes down its list, from the command to the last module.

A walk is one command on a tiny example. Every module of the list is entered, and only by calls from modules
above it: a walk that turns back makes the list wrong. A function defined inside another one is a callback
(progress), which is handed down and called from below; neither it nor what it calls in its own module is a
step of the walk. What another thread does first it does for the command: it is the broker behind its socket.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from malleable.live.broker import http_client
from support.broker_server import broker_thread
from support.shell import malleable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TINY = ("paper", "--cores", "4", "--load", "0.25", "--jobs", "300", "--interpreted")
COMMANDS = {
    "simulate": ("simulate", *TINY),
    # On cores that no other test asks about: a program is made once in a process.
    "allocate": ("allocate", "paper", "--cores", "4.17", "--jobs", "jobs.csv"),
    "paper --quick": ("paper", "--quick", "--only", "e01_speedups", "--workers", "2"),
    "A function of yours": ("simulate", *TINY, "--policy", "mine.py:one_each"),
    "submit -- make": ("submit", "--", "make"),
}


def walks() -> dict[str, list[str]]:
    """Each walk's title with the modules of its list."""
    section = re.search(r"^## The five walks\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    parts = re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", section[1], re.MULTILINE | re.DOTALL)
    return {
        title.replace("`", "").removeprefix("malleable "): re.findall(
            r"^\d+\. `([\w/]+)`", body, re.MULTILINE
        )
        for title, body in parts
    }


def steps(modules: list[str], *command: str) -> set[tuple[str, str]]:
    """Calls from one of the modules into another while a command runs; the first is called by no other."""
    names = {f"malleable.{module.replace('/', '.')}": module for module in modules}
    found: set[tuple[str, str]] = set()

    def enter(frame, event, _):
        here = names.get(frame.f_globals.get("__name__", ""))
        if event == "call" and here is not None:
            caller = _caller(frame, here, names, modules[0])
            if caller is not None:
                found.add((caller, here))

    before = sys.getprofile()
    with broker(enter) if command[0] == "submit" else nullcontext():
        sys.setprofile(enter)
        try:
            done = malleable(*command)
        finally:
            sys.setprofile(before)
    assert done.status == 0, done.err
    return found


@contextmanager
def broker(enter):
    """The user's broker in this process, in threads that are watched too."""
    with pytest.MonkeyPatch.context() as patch:
        threading.setprofile(enter)
        try:
            with broker_thread() as made:
                patch.setenv("MALLEABLE_HOME", str(made.path.parent))
                patch.setattr(http_client, "SOCKET", made.path.name)
                yield
        finally:
            threading.setprofile(None)


def _caller(frame, here: str, names: dict[str, str], first: str) -> str | None:
    """The module of the list that made a call, however far up; None in an import or a callback."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and module.startswith("malleable."):
            return None
        if names.get(module) == here and frame.f_code.co_flags & inspect.CO_NESTED:
            return None
        if names.get(module, here) != here:
            return names[module]
        frame = frame.f_back
    return None if threading.current_thread() is threading.main_thread() else first


def test_there_are_five_walks():
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
def test_a_walk_goes_down_its_list(title, tmp_path, monkeypatch):
    """Each module but the first is called, and only by modules above it."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("id,class,remaining\na,class-1,0.1\nb,class-2,0.5\n")
    Path("mine.py").write_text("def one_each(jobs, cores):\n    return [1.0] * len(jobs)\n")
    modules = walks()[title]
    command, *options = COMMANDS[title]
    found = steps(modules, command, "--json", *options)
    assert {callee for _, callee in found} == set(modules[1:])
    upwards = {(a, b) for a, b in found if modules.index(a) > modules.index(b)}
    assert not upwards
