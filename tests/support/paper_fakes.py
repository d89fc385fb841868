"""A folder of tiny experiments to run in place of the real ones: each notes in a file what it computed."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from malleable.paper import reproduce

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "tiny_experiments"
SOURCE = '''
"""A tiny experiment."""
import math, os, pathlib, time
from malleable.errors import InfeasibleError
from malleable.paper.contracts import Cell, Findings, Table, Verdict
from malleable.plots.figures import Axis, Figure, Panel, Series

NAME = __name__.rpartition(".")[2]
LOG = pathlib.Path({log!r})
CHOICES = {{"ties": "the earliest job first"}}


def cells(effort):
    arguments = {{"seed": 5, "jobs": effort.jobs}}
    return [Cell(f"c{{i}}", work, {{"i": i, **arguments}}, 1.0 + i) for i in range({cells})]


def work(i, seed, jobs):
    time.sleep({pause})
    if i == {slow}:
        time.sleep(60.0)
    if i == {fatal}:
        os._exit(1)
    if i == {wrong}:
        raise ZeroDivisionError("a bug in a cell")
    with LOG.open("a") as log:
        log.write(f"{{NAME}} {{i}} {{jobs}}\\n")
    if i == {infeasible}:
        raise InfeasibleError("load 1.5: too much work")
    return {{"x": i, "y": i * i, "seeds": [seed + i]}}


def findings(effort, values):
    points = [values[f"c{{i}}"] for i in range({cells})]
    if {raises}:
        raise KeyError("nothing here")
    x = tuple(float(i) for i in range({cells}))
    y = tuple(math.nan if "error" in point else float(point["y"]) + {shift} for point in points)
    series = Series("squares", x, y)
    panel = Panel(Axis("x"), Axis("y"), (series,))
    figures = tuple(Figure(f"{{NAME}}-{{k}}", "Squares", "A curve.", (panel,)) for k in ("a", "b"))
    table = Table({table!r} or f"{{NAME}}-table", "Squares", {{"x": x, "y": y}})
    return Findings(f"About {{NAME}}", "Figure 1", "Squares grow.", figures, (table,),
                    (Verdict("squares grow", y[-1] > y[0], f"up to {{y[-1]:g}}"),))
'''
SETTINGS = {
    "cells": 3,
    "pause": 0.0,
    "slow": None,
    "fatal": None,
    "wrong": None,
    "infeasible": None,
    "raises": False,
    "shift": 0.0,
    "table": "",
}


def write(folder: Path, *names: str, **settings: object) -> Path:
    """Write experiments of these names below `folder`; returns the file they log to."""
    package = folder / PACKAGE
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("")
    log = folder / "log.txt"
    for name in names:
        text = SOURCE.format(**{**SETTINGS, **settings, "log": str(log)})
        (package / f"{name}.py").write_text(text)
    return log


@contextmanager
def used(folder: Path) -> Iterator[None]:
    """Have `reproduce` find the experiments below `folder`, as they are written now."""
    _forget()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    importlib.invalidate_caches()
    try:
        with mock.patch.object(reproduce, "experiments", importlib.import_module(PACKAGE)):
            yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = before
        _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


COMMAND_LINE = """\
import signal, sys
sys.path.insert(0, {tests!r})
import pathlib
from support import paper_fakes
from malleable import plots
from malleable.cli import main

# Tests that were started in the background ignore Ctrl-C, and so would this process.
signal.signal(signal.SIGINT, signal.default_int_handler)
plots.draw_files = lambda figure: {{suffix: b"<svg></svg>" for suffix in plots.SUFFIXES}}
with paper_fakes.used(pathlib.Path({folder!r})):
    main()
"""


def command_line(folder: Path) -> str:
    """A program that is the command line of malleable, with the tiny experiments of the folder."""
    tests = Path(__file__).parents[1]
    return COMMAND_LINE.format(tests=str(tests), folder=str(folder))
