"""Run experiments: cells that are missing are computed, on all cores; the rest is read from the notebook."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from malleable.errors import MalleableError, OutputError, UnknownKindError, did_you_mean
from malleable.paper import experiments
from malleable.paper.notebook import MISSING, Notebook
from malleable.spreading import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from malleable.paper.contracts import Cell, Effort, Findings


@dataclass(frozen=True)
class Experiment:
    """An experiment and the name of its module."""

    name: str
    module: Any

    def cells(self, effort: Effort) -> list[Cell]:
        """What it needs computed."""
        made: list[Cell] = self.module.cells(effort)
        return made

    def findings(self, effort: Effort, values: dict[str, Any]) -> Findings:
        """What it makes of the values."""
        made: Findings = self.module.findings(effort, values)
        return made


def all_experiments(only: Iterable[str] | None = None) -> list[Experiment]:
    """The experiments in order of their modules' names, or those named."""
    names = sorted(i.name for i in pkgutil.iter_modules(experiments.__path__) if not i.name.startswith("_"))
    for name in only or ():
        if name not in names:
            raise UnknownKindError(f"no experiment is called {name!r}", did_you_mean(name, names))
    chosen = names if only is None else [name for name in names if name in set(only)]
    return [Experiment(name, importlib.import_module(f"{experiments.__name__}.{name}")) for name in chosen]


def compute(
    chosen: Iterable[Experiment],
    effort: Effort,
    notebook: Notebook,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Values of all cells by experiment; what is missing is computed first, the longest cells first."""
    chosen = list(chosen)
    cells = {experiment.name: experiment.cells(effort) for experiment in chosen}
    missing = [
        (name, cell) for name in cells for cell in cells[name] if notebook.value(name, cell) is MISSING
    ]
    missing.sort(key=lambda pair: -pair[1].weight)
    if missing:
        done = spread(partial(_computed, notebook), missing, None, progress)
        if any(outcome is None for outcome in done):
            raise KeyboardInterrupt
    return {name: {cell.key: notebook.value(name, cell) for cell in cells[name]} for name in cells}


def _computed(
    notebook: Notebook, task: tuple[str, Cell], progress: Callable[[int, int], None] | None
) -> bool:
    """Compute one cell and write it down at once."""
    name, cell = task
    weight = max(1, round(100 * cell.weight))
    if progress is not None:
        progress(0, weight)
    try:
        value = cell.work(**cell.arguments)
    except OutputError:
        raise
    except MalleableError as error:
        value = {"error": error.sentence}
    notebook.keep(name, cell, value)
    if progress is not None:
        progress(weight, weight)
    return True
