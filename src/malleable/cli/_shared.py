"""Options and output that all verbs share."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from malleable.model import Workload

WorkloadArgument = Annotated[
    str, typer.Argument(metavar="WORKLOAD", help="A built-in workload (paper) or a TOML file.")
]
CoresOption = Annotated[str, typer.Option("--cores", "-n", metavar="N", help="Number of cores, at least 1.")]
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
        "--policy", metavar="P", help="A policy, with options: wham, fw-cam:beta=0.8, file.py:Name."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


EXAMPLES = {"cores": "64", "load": "0.25", "precision": "0.01", "confidence": "0.95"}


def number(text: str, name: str) -> float:
    """Read a number ourselves, so that a wrong one is an error of ours with a hint, like any other."""
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


def scaled_workload(source: str, cores: str, load: str | None) -> tuple[Workload, float]:
    """The workload at the given load, and the checked number of cores."""
    from malleable.model import checked_cores, load_workload

    n = checked_cores(number(cores, "cores"))
    return load_workload(source).at(n, None if load is None else number(load, "load")), n


def print_json(document: Any) -> None:
    """One JSON document on stdout; numbers that JSON cannot write become null."""
    typer.echo(json.dumps(finite(document), indent=2))


def finite(document: Any) -> Any:
    """The document with infinities and NaN replaced by None and NumPy numbers by Python's."""
    if isinstance(document, dict):
        return {key: finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [finite(value) for value in document]
    if hasattr(document, "tolist"):
        return finite(document.tolist())
    return None if isinstance(document, float) and not math.isfinite(document) else document


def console() -> Console:
    """Where tables for people go."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Pipe(highlight=False, soft_wrap=False)


def table(title: str, *columns: str, words: int = 1) -> Table:
    """A quiet table: the first `words` columns hold words, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # A title longer than its table stays on one line.
    heading = Text(title, style="bold", no_wrap=True, overflow="ignore")
    made = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position < words else "right")
    return made


def show(value: float | None, digits: int = 6) -> str:
    """A number for people: six significant digits, a dash for none."""
    return "–" if value is None else "∞" if math.isinf(value) else f"{value:.{digits}g}"
