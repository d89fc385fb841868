"""Run experiments: cells that are missing are computed, on all cores; the rest is read from the store."""

from __future__ import annotations

import importlib
import pkgutil
import re
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError, MalleableError, OutputError, UnknownKindError, did_you_mean
from malleable.execution.worker_processes import checked_workers
from malleable.paper import experiments
from malleable.paper.cell_store import MISSING, CellStore
from malleable.paper.contracts import NORMAL, Cell, Effort, Findings, Verdict, count_verdicts, failed
from malleable.paper.precompile import Rules, rules_of
from malleable.paper.workers import carry_out
from malleable.paper.write import WORDS, Chapter, publish
from malleable.plots import check_installed

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable

    from malleable.paper.workers import Report

NUMBERED = re.compile(r"e\d")
"""How the name of an experiment begins; other modules beside them are shared helpers."""
FIGURES = {"fig1": "e01_speedups", "fig2a": "e02_converge", "fig2b": "e03_others"}
"""The experiments behind the figures of the paper."""


class ExperimentError(ExecutionError):
    """An experiment cannot make its findings: a bug in it, so there is a traceback to be shown."""

    @property
    def trace(self) -> str:
        """The traceback of what the experiment raised."""
        return "".join(traceback.format_exception(self.__cause__)) if self.__cause__ else ""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, and how many of the cells are kept."""

    def __init__(self, kept: int, total: int) -> None:
        super().__init__()
        self.kept, self.total = kept, total


@dataclass(frozen=True)
class Experiment:
    """An experiment: its name, and the package (or module) with its functions."""

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

    @property
    def choices(self) -> dict[str, str]:
        """What it chose where the paper is silent: `CHOICES` of its module, if it has any."""
        return dict(getattr(self.module, "CHOICES", {}))


@dataclass(frozen=True)
class Reproduction:
    """What was found, and the page that shows it."""

    page: Path
    effort: Effort
    chapters: tuple[Chapter, ...]
    drawn: tuple[str, ...]
    """Figures that had to be drawn; the others were there."""

    def counts(self, *, of_the_paper: bool) -> Counter[str]:
        """How many statements hold, fail or are undecided, of the paper or of this project."""
        return count_verdicts([one.findings for one in self.chapters], of_the_paper=of_the_paper)

    def to_dict(self) -> dict[str, Any]:
        """The verdicts as one document."""
        verdicts = [
            {
                "experiment": chapter.name,
                "statement": verdict.statement,
                "verdict": verdict.word,
                "holds": verdict.holds,
                "measured": verdict.measured,
                "of_the_paper": chapter.findings.of_the_paper,
            }
            for chapter in self.chapters
            for verdict in chapter.findings.verdicts
        ]
        counts = {
            name: {word: found[word] for word in WORDS}
            for name, found in (
                ("paper", self.counts(of_the_paper=True)),
                ("ours", self.counts(of_the_paper=False)),
            )
        }
        return {
            "effort": self.effort.name,
            "page": self.page.as_posix(),
            "counts": counts,
            "verdicts": verdicts,
        }


@dataclass(frozen=True)
class _Missing:
    """A cell to be computed."""

    experiment: str
    cell: Cell

    @property
    def label(self) -> str:
        """Where its value will be found."""
        return f"{self.experiment}/{self.cell.key}"

    @property
    def weight(self) -> float:
        """How long it takes compared to others."""
        return self.cell.weight


def reproduce(
    out: str | Path,
    effort: Effort = NORMAL,
    only: Iterable[str] | None = None,
    progress: Callable[[Report], None] | None = None,
    workers: int | None = None,
) -> Reproduction:
    """Compute what is missing, and write figures, tables, findings and the page into the folder `out`.

    `only` names experiments to restrict it to. What is there and still true is left as it is. The work is
    spread over `workers` processes, one per processor by default.
    """
    check_installed()
    checked_workers(workers)
    chosen = all_experiments(only)
    store = CellStore(out, f"cells/{effort.name}")
    store.check()
    values = compute(chosen, effort, store, progress, workers)
    chapters = tuple(_chapter(experiment, effort, values[experiment.name]) for experiment in chosen)
    page, drawn = publish(chapters, effort, store, progress, workers)
    return Reproduction(page, effort, chapters, drawn)


def experiment_names() -> list[str]:
    """The names of all experiments, in their order."""
    found = (module.name for module in pkgutil.iter_modules(experiments.__path__))
    return sorted(name for name in found if NUMBERED.match(name))


def all_experiments(only: Iterable[str] | None = None) -> list[Experiment]:
    """The experiments in order of their names, or those named, also by a figure of the paper."""
    names = experiment_names()
    wanted = {FIGURES.get(name, name) for name in (names if only is None else only)}
    for name in wanted:
        if name not in names:
            raise UnknownKindError(
                f"no experiment is called {name!r}", did_you_mean(name, [*FIGURES, *names])
            )
    chosen = [name for name in names if name in wanted]
    return [Experiment(name, importlib.import_module(f"{experiments.__name__}.{name}")) for name in chosen]


def compute(
    chosen: Iterable[Experiment],
    effort: Effort,
    store: CellStore,
    progress: Callable[[Report], None] | None = None,
    workers: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Values of all cells by experiment; what is missing is computed first, the longest cells first."""
    cells = {experiment.name: experiment.cells(effort) for experiment in chosen}
    everything = [_Missing(name, cell) for name in cells for cell in cells[name]]
    missing = [asked for asked in everything if store.value(asked.experiment, asked.cell) is MISSING]
    missing.sort(key=lambda asked: -asked.weight)
    kept = len(everything) - len(missing)
    rules = rules_of(asked.cell for asked in missing)

    def count(position: int, _: Any) -> None:
        nonlocal kept
        kept += position >= len(rules)

    try:
        carry_out("computing", partial(_computed, store), [*rules, *missing], count, progress, workers)
    except KeyboardInterrupt:
        raise Interrupted(kept, len(everything)) from None
    return {name: {cell.key: store.value(name, cell) for cell in cells[name]} for name in cells}


def _computed(store: CellStore, asked: Rules | _Missing) -> None:
    """Compute one cell and write it down at once."""
    if isinstance(asked, Rules):
        asked.compile()
        return
    try:
        value = asked.cell.work(**asked.cell.arguments)
    except OutputError:
        raise
    except MalleableError as error:
        value = {"error": error.sentence}
    store.keep(asked.experiment, asked.cell, value)


def _chapter(experiment: Experiment, effort: Effort, values: dict[str, Any]) -> Chapter:
    """Findings of an experiment; an error in it is told with its name.

    Some experiments can do without a cell that failed, and say so; for others there is nothing to find then,
    which is no reason to have no page.
    """
    asked = tuple(cell.arguments for cell in experiment.cells(effort))
    errors = [f"{k}: {v['error'] if v else 'no value'}" for k, v in values.items() if failed(v)]
    try:
        findings = experiment.findings(effort, values)
    except Exception as error:
        problem = f"the experiment {experiment.name} raised {type(error).__name__}: {error!s:.200}"
        if not errors:
            raise ExperimentError(problem, "mend it; what was computed is kept") from error
        findings = _nothing_found(experiment, errors, problem)
    return Chapter(experiment.name, findings, experiment.choices, values, asked)


def _nothing_found(experiment: Experiment, errors: list[str], problem: str) -> Findings:
    """What to say instead of findings when cells that they need have failed."""
    about, _, _ = (experiment.module.__doc__ or experiment.name).partition("\n")
    verdict = Verdict("All that this needs can be computed", None, "; ".join(errors))
    statement = "Part of it could not be computed, and the rest says nothing alone."
    return Findings(about, experiment.name, statement, verdicts=(verdict,), remarks=(problem,))
