"""Options and output that all verbs share."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malleable.cli._streams import in_encoding, silence
from malleable.numerics.json_numbers import finite

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


WorkloadArgument = Annotated[
    str, typer.Argument(metavar="WORKLOAD", help="A built-in workload (paper), a TOML file, or - for stdin.")
]
CoresOption = Annotated[str, typer.Option("--cores", "-n", metavar="N", help="Number of cores, at least 1.")]
ManyCoresOption = Annotated[
    str, typer.Option("--cores", "-n", metavar="N[,M]", help="Number of cores, at least 1, or several.")
]
LoadOption = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="R",
        help="Scale the arrival rates to this system load, below 1 unless speedups are super-linear.",
    ),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="P",
        help="A policy, with options: wham, fw-cam:beta=0.8, fixed-width:widths=4/2/8, file.py:Name.",
    ),
]
CapacityOption = Annotated[
    str | None,
    typer.Option(
        "--capacity",
        metavar="C",
        help="Cores over time: failures:nodes=8,up=100,down=5 or schedule:times=0/50,cores=8/4,period=90.",
    ),
]
PlotOption = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw it, as .svg, .png or .pdf.")
]
ReportOption = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write a page about it (.html).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


SENTENCES = ("what it is", "needs to know", "parameters", "statement")
"""Columns of tables that may be wrapped."""
SENTENCE = 16
"""Characters per line that they have at least."""
ENDLESS = 10_000
"""Characters per line of a terminal that is wide enough for anything."""
EXAMPLES = {"cores": "64", "load": "0.25", "precision": "0.01", "confidence": "0.95"}


def number(text: str, name: str) -> float:
    """Read a number ourselves, so that a wrong one is an error with a hint, like any other."""
    from malleable.errors import ParameterError

    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        example = EXAMPLES.get(name, "1")
        raise ParameterError(f"{name} must be a number, got {text!r}", f"for example --{name} {example}")
    return value


def whole(text: str, name: str, example: str) -> int:
    """Read a whole number; 1e6 and 1_000_000 are ways to write one."""
    from malleable.errors import ParameterError

    try:
        value = float(text)
        if value.is_integer():
            return int(text) if text.lstrip("+-").isdigit() else int(value)
    except (ValueError, OverflowError):
        pass
    raise ParameterError(f"{name} must be a whole number, got {text!r}", f"for example --{name} {example}")


def scale(cores: str, load: str | None) -> tuple[float, float | None]:
    """The number of cores and the load that a command names; the library checks them."""
    return number(cores, "cores"), None if load is None else number(load, "load")


def several(cores: str, load: str | None) -> list[tuple[float, float | None]]:
    """Each of the numbers of cores that a command names, with the load."""
    return [scale(one.strip(), load) for one in cores.split(",")]


def deliver_files(found: Any, plot: str | None, page: str | None, *, quiet: bool) -> None:
    """Draw what was found and write its page, where these were asked for."""
    from malleable import api

    written = [api.draw(found, plot)] if plot is not None else []
    written += [api.report(found, page)] if page is not None else []
    for path in written:
        if not quiet:
            console().print(f"written: {path}", soft_wrap=True)


def print_json(document: Any) -> None:
    """One JSON document on stdout; numbers that JSON cannot write become null."""
    typer.echo(json.dumps(finite(document), indent=2))


def say(text: str) -> None:
    """A line on stderr; where that cannot be written, it is left out."""
    try:
        typer.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def say_error(sentence: str, hint: str) -> None:
    """What is wrong, and what to do about it, a line each."""
    say(f"error: {sentence}")
    if hint:
        say(f"hint: {hint}")


def console() -> Console:
    """Where tables for people go: what is printed stands there as it is, and lines are not cut short."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def print(self, *things: Any, **options: Any) -> None:
            """Print tables as wide as their words need: a terminal that is narrower wraps them."""
            before = self._width
            tables = [thing for thing in things if isinstance(thing, Table)]
            endless = self.options.update(width=ENDLESS)
            needed = [Measurement.get(self, endless, made).minimum for made in tables]
            self.width = max(self.width, *needed) if needed else self.width
            try:
                super().print(*things, **{"crop": False, **options})
            finally:
                self._width = before

    return Plain(highlight=False, markup=False, emoji=False, soft_wrap=False)


def table(title: str, *columns: str, words: int = 1) -> Table:
    """A quiet table: the first `words` columns hold words, the others numbers; names stay in one piece."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    class Plain(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            """Add a row whose words stand there as they are: brackets in a name are no markup."""
            shown = [plain(cell) if isinstance(cell, str) else cell for cell in cells]
            for column, cell in zip(self.columns, shown, strict=False):
                _fit(column, cell)
            super().add_row(*shown, **options)

    # A title longer than its table stays on one line.
    heading = Text(visible(title), style="bold", no_wrap=True, overflow="ignore")
    made = Plain(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        sentence = column in SENTENCES
        made.add_column(
            plain(column),
            justify="left" if position < words else "right",
            no_wrap=not sentence,
            min_width=SENTENCE * sentence,
        )
        _fit(made.columns[-1], plain(column))
    return made


def _fit(column: Any, cell: Text) -> None:
    """Make a column wide enough for a cell: numbers and names that are cut short lie."""
    if column.no_wrap:
        column.min_width = max(column.min_width, *(line.cell_len for line in cell.split(allow_blank=True)))


def plain(text: str) -> Text:
    """Text that stands there as it is."""
    from rich.text import Text

    return Text(visible(text))


def visible(text: str) -> str:
    """What a user wrote; characters that would steer the terminal, or that it lacks, in others."""
    return in_encoding("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text))


def show(value: float | None, digits: int = 6) -> str:
    """A number for people: six significant digits, a dash for none."""
    return "–" if value is None else "∞" if math.isinf(value) else f"{value:.{digits}g}"
