"""The folder of a reproduction: every value on disk as soon as it is known, nothing computed twice.

A cell's file holds what was asked and what came out. It counts only if the question is still the same:
experiment, key, arguments, and the sources that the answer depends on (a digest of the package). Files are
written beside their place and moved there, so a run that is killed leaves no half of one.
"""

from __future__ import annotations

import functools
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.catalog import FAMILIES
from malleable.errors import OutputError
from malleable.paper.source_digest import digest, members
from malleable.results.files import replace_file

if TYPE_CHECKING:
    from malleable.paper.contracts import Cell

MISSING = object()
PROBE = 1 << 16
"""Bytes that must fit on the disk before anything is computed."""


class CellStore:
    """Values of cells and other files under one folder."""

    def __init__(self, folder: str | Path, cells: str = "cells") -> None:
        self.folder = Path(folder)
        self.cells = cells
        """Where the cells are: each effort has its own place, so that a quick look costs no long run."""

    def check(self) -> None:
        """See that files can be written here, before hours are spent on what would go into them."""
        place = self.write(".probe", bytes(PROBE))
        with suppress(OSError):
            place.unlink()

    def value(self, experiment: str, cell: Cell) -> Any:
        """The value of a cell if it is known, else `MISSING`."""
        # Worked out first, so that what a long run computes belongs to the sources that it began with.
        asked = question(cell)
        with suppress(OSError, ValueError, KeyError, TypeError):
            page = json.loads(self._place(experiment, cell).read_text(encoding="utf-8"))
            if page["question"] == asked:
                return page["value"]
        return MISSING

    def keep(self, experiment: str, cell: Cell, value: Any) -> None:
        """Write down the value of a cell."""
        page = {"question": question(cell), "value": value}
        self.write(self._place(experiment, cell).relative_to(self.folder), json.dumps(page, indent=1))

    def write_changed(self, name: str | Path, content: str | bytes) -> bool:
        """Write a file unless it is there with that content; whether it was written."""
        fresh = content.encode() if isinstance(content, str) else content
        with suppress(OSError):
            if (self.folder / name).read_bytes() == fresh:
                return False
        self.write(name, fresh)
        return True

    def write(self, name: str | Path, content: str | bytes) -> Path:
        """Write a file of the folder, whole or not at all."""
        place = self.folder / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, content.encode() if isinstance(content, str) else content)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise OutputError(f"cannot write {place}: {reason}", "choose another folder with --out") from None
        return place

    def _place(self, experiment: str, cell: Cell) -> Path:
        return self.folder / self.cells / experiment / f"{cell.key}.json"


def question(cell: Cell) -> dict[str, Any]:
    """What a cell asks, as JSON holds it."""
    asked: dict[str, Any] = json.loads(json.dumps(dict(cell.arguments), sort_keys=True))
    return {"work": cell.work.__name__, "arguments": asked, "sources": sources(cell.work.__module__)}


@functools.cache
def sources(module: str) -> str:
    """A digest of all that a cell's value depends on: what its module imports, and what is found by name."""
    return digest([module, *(name for family in FAMILIES for name in members(f"malleable.{family}"))], module)
