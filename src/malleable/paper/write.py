"""From findings to files: figures, tables, findings, manifest and the page; only what is missing or changed.

A figure is drawn again if what it shows has changed, or how figures are drawn; `figures/digests.json` knows
what the files were drawn from. All other files are compared with what would be written.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from malleable import plots
from malleable.errors import ExecutionError
from malleable.numerics.json_numbers import finite
from malleable.paper.cell_store import CellStore
from malleable.paper.contracts import Findings
from malleable.paper.manifest import manifest
from malleable.paper.workers import carry_out
from malleable.plots.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from malleable.paper.contracts import Effort, Table
    from malleable.paper.workers import Report

DIGESTS = "figures/digests.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Chapter:
    """An experiment's findings, and what they were made from."""

    name: str
    findings: Findings
    choices: Mapping[str, str] = field(default_factory=dict)
    """What was chosen where the paper is silent."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values of its cells."""
    asked: tuple[Mapping[str, Any], ...] = ()
    """Arguments of its cells."""


WORDS = ("holds", "fails", "undecided")


@dataclass(frozen=True)
class _Sheet:
    """A figure to be drawn."""

    figure: Figure
    store: CellStore
    weight: float = 1.0

    @property
    def label(self) -> str:
        """What it is called."""
        return self.figure.name


def publish(
    chapters: Sequence[Chapter],
    effort: Effort,
    store: CellStore,
    progress: Callable[[Report], None] | None = None,
    workers: int | None = None,
) -> tuple[Path, tuple[str, ...]]:
    """Write all files; returns the path of the page, and which figures had to be drawn."""
    from malleable.paper.page import page  # noqa: PLC0415 - jinja2 comes with an extra

    _check_names(chapters)
    figures = [figure for chapter in chapters for figure in chapter.findings.figures]
    drawn = draw(figures, store, progress, workers)
    for chapter in chapters:
        for figure in chapter.findings.figures:
            store.write_changed(f"figures/{figure.name}.csv", rows_of(figure))
        for table in chapter.findings.tables:
            store.write_changed(f"tables/{table.name}.csv", columns_of(table))
        store.write_changed(f"findings/{chapter.name}.json", _json(asdict(chapter.findings)))
    record = manifest(chapters, effort)
    store.write_changed("manifest.json", _json(record))
    names = [figure.name for chapter in chapters for figure in chapter.findings.figures]
    pictures = {name: (store.folder / f"figures/{name}.svg").read_bytes() for name in names}
    store.write_changed("index.html", page(chapters, record, pictures))
    return store.folder / "index.html", drawn


def draw(
    figures: Sequence[Figure],
    store: CellStore,
    progress: Callable[[Report], None] | None = None,
    workers: int | None = None,
) -> tuple[str, ...]:
    """Draw the figures whose files are missing or stale, on all cores; returns their names."""
    digests = _digests(store)
    fresh = {figure.name: plots.digest(figure) for figure in figures}
    stale = [
        _Sheet(figure, store)
        for figure in figures
        if digests.get(figure.name) != fresh[figure.name]
        or not all((store.folder / f"figures/{figure.name}.{s}").exists() for s in plots.SUFFIXES)
    ]

    def keep(position: int, _: Any) -> None:
        name = stale[position].figure.name
        digests[name] = fresh[name]
        store.write_changed(DIGESTS, _json(digests))

    if stale:
        plots.prepare()
    carry_out("drawing", _drawn, stale, keep, progress, workers)
    return tuple(sheet.figure.name for sheet in stale)


def _drawn(sheet: _Sheet) -> None:
    """Draw one figure."""
    for suffix, content in plots.draw_files(sheet.figure).items():
        sheet.store.write_changed(f"figures/{sheet.figure.name}.{suffix}", content)


def _digests(store: CellStore) -> dict[str, str]:
    with suppress(OSError, ValueError):
        known = json.loads((store.folder / DIGESTS).read_text(encoding="utf-8"))
        if isinstance(known, dict):
            return known
    return {}


def columns_of(table: Table) -> str:
    """A table as CSV."""
    return _csv(list(table.columns), zip(*table.columns.values(), strict=True))


def rows_of(figure: Figure) -> str:
    """All that a figure shows as CSV, one row per point."""
    rows: list[tuple[Any, ...]] = []
    for number, panel in enumerate(figure.panels, 1):
        for one in panel.series:
            empty = ("",) * len(one.x)
            columns = one.x, one.y, one.low or empty, one.high or empty, empty, one.notes or empty
            rows += [(number, panel.title, one.name, *point) for point in zip(*columns, strict=True)]
        if panel.grid is not None:
            grid = panel.grid
            rows += [
                (number, panel.title, grid.title, x, y, "", "", z, "")
                for y, row in zip(grid.y, grid.z, strict=True)
                for x, z in zip(grid.x, row, strict=True)
            ]
        rows += [(number, panel.title, "marked", x, y, "", "", "", text) for x, y, text in panel.marks]
    return _csv(["panel", "title", "series", "x", "y", "low", "high", "z", "note"], rows)


def _csv(head: list[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _json(document: Any) -> str:
    return json.dumps(finite(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _check_names(chapters: Sequence[Chapter]) -> None:
    """Names become files: they must be fit for it, and no two the same."""
    for kind in ("figures", "tables"):
        owner: dict[str, str] = {}
        for chapter in chapters:
            for name in (thing.name for thing in getattr(chapter.findings, kind)):
                if not NAME.fullmatch(name):
                    problem = f"{chapter.name}: {name!r} is no name for a file"
                    raise ExecutionError(problem, "use letters, digits, . _ -")
                if name in owner:
                    problem = f"{owner[name]} and {chapter.name} both have {kind} called {name!r}"
                    raise ExecutionError(problem, "give one of them another name")
                owner[name] = chapter.name
