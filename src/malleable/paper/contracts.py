"""What an experiment is made of: cells that are computed, and findings that are made from them.

An experiment is a package (or a module) in `experiments/` that offers two functions:

    cells(effort) -> list[Cell]              what has to be computed; each cell is kept on disk
    findings(effort, values) -> Findings     figures, tables and verdicts from the cells' values, by key

`findings` is pure: it computes every verdict from numbers and writes none by hand, so a test can feed it
the numbers of a broken policy and see the verdict turn. Figures say what is to be seen; `malleable.plots`
draws them, on a page and on paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from malleable.plots.figures import Figure

Values = Mapping[str, Any]
"""Values of the cells by key; those of cells that `failed` are errors (see `Cell`)."""


@dataclass(frozen=True)
class Effort:
    """How much to compute: chosen once, for all experiments."""

    name: str
    jobs: int
    """Jobs of a simulation that has no precision to meet."""
    precision: float
    """Relative half-width that costs are simulated to."""
    most_jobs: int
    """Where a simulation with a precision stops at the latest."""

    @property
    def quick(self) -> bool:
        """Whether to leave out what is not needed to see that all works."""
        return self.name == "quick"


QUICK = Effort("quick", 60_000, 0.02, 200_000)
NORMAL = Effort("normal", 1_000_000, 0.002, 8_000_000)
FULL = Effort("full", 20_000_000, 0.0005, 2_000_000_000)
EFFORTS = {effort.name: effort for effort in (QUICK, NORMAL, FULL)}


@dataclass(frozen=True)
class Cell:
    """One computation: a function of a module, called with values that JSON can hold, returning such a value.

    `work` is called as work(**arguments) in some process. A `MalleableError` that it raises (infeasible,
    unstable) is kept as {"error": sentence}, so that the point can be marked instead of dropped.
    """

    key: str
    """Name of the cell within its experiment; also of its file, so letters, digits, dots, - and _ only."""
    work: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    """How long it takes compared to others, roughly: long ones are started first."""


def failed(value: Any) -> bool:
    """Whether a cell has no value, for a reason that the model gives."""
    return value is None or (isinstance(value, dict) and "error" in value)


@dataclass(frozen=True)
class Table:
    """Columns by name, all of the same length; also written as CSV."""

    name: str
    title: str
    columns: Mapping[str, tuple[Any, ...]]
    shown: bool = True
    """Whether the page shows it, or only offers the file."""


@dataclass(frozen=True)
class Verdict:
    """A statement, and whether the numbers bear it out."""

    statement: str
    holds: bool | None
    """None where the numbers do not decide."""
    measured: str
    """The numbers, as a short text made from them."""

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return "undecided" if self.holds is None else "holds" if self.holds else "fails"


@dataclass(frozen=True)
class Findings:
    """What an experiment has to say."""

    title: str
    source: str
    """Where the paper says it (`Figure 3`, `Lemma 2`), or `beyond the paper`."""
    statement: str
    """What is claimed or asked, in a few sentences that a newcomer can follow."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    remarks: tuple[str, ...] = ()
    """What to know when reading the numbers: choices made where the paper is silent, limits of the method."""

    @property
    def of_the_paper(self) -> bool:
        """Whether these are claims of the paper, and not of this project."""
        return not self.source.startswith("beyond the paper")


def count_verdicts(all_findings: Iterable[Findings], *, of_the_paper: bool) -> Counter[str]:
    """How many statements hold, fail or are undecided, of the paper or of this project."""
    return Counter(
        verdict.word
        for findings in all_findings
        if findings.of_the_paper == of_the_paper
        for verdict in findings.verdicts
    )
