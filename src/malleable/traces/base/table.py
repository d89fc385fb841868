"""A table: a header, and a row per job, as text or Parquet; rows of another length are counted."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import fields
from malleable.traces.base.parquet import parquet_columns, parquet_names
from malleable.traces.base.trace import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.traces.base.source import Source
    from malleable.traces.base.trace import Column

DELIMITERS = ",;\t|"
LENGTH = "a number of fields that is not the header's"
BROKEN = "a line that cannot be read"


class Table:
    """Columns by the names in the header, in small letters."""

    def __init__(self, name: str, columns: dict[str, Column], lost: dict[str, int]) -> None:
        self.name = name
        self.columns = columns
        self.lost = lost

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def first(self, *names: str) -> Column | None:
        """The first of these columns that is there."""
        return next((self.columns[name] for name in names if name in self.columns), None)

    def number(self, *names: str) -> FloatArray | None:
        """A column as numbers."""
        found = self.first(*names)
        return None if found is None else fields.numbers(found)

    def moments(self, *names: str) -> FloatArray | None:
        """A column as points in time."""
        found = self.first(*names)
        return None if found is None else fields.moments(found)[0]

    def lengths(self, *names: str, unit: float = 1.0) -> FloatArray | None:
        """A column as lengths of time, plain numbers of which are in `unit` seconds."""
        found = self.first(*names)
        return None if found is None else fields.lengths(found, unit)

    def words(self, *names: str) -> Labels | None:
        """A column as labels; numbers stand behind the name of the column."""
        found = self.first(*names)
        return None if found is None else Labels.of_column(found, f"{names[0]}-")

    def ids(self, *names: str) -> NDArray[Any] | None:
        """A column as names of jobs."""
        found = self.first(*names)
        if found is None or isinstance(found, np.ndarray):
            return found
        return np.array([*found, None], dtype=object)[:-1]

    def needed(self, what: str, hint: str, *names: str) -> Column:
        """A column that there must be."""
        found = self.first(*names)
        if found is None:
            raise TraceError(f"{self.name} has no column {what!r}", hint)
        return found


def header_of(source: Source) -> set[str]:
    """Names in the first line, whatever stands between them, or of the columns of a Parquet file."""
    if source.parquet:
        return {name.lower() for name in parquet_names(source)}
    first = source.first
    return {name.strip().strip('"').lower() for name in first.split(delimiter_of(first))}


def delimiter_of(line: str) -> str:
    """What stands between the fields of a line."""
    return max(DELIMITERS, key=line.count)


def read_table(source: Source, delimiter: str | None = None) -> Table:
    """All rows of a table, by columns."""
    if source.parquet:
        return Table(source.name, parquet_columns(source), {})
    first = source.first
    mark = delimiter or delimiter_of(first)
    rows, lost = _rows(source.lines(), mark)
    if not rows:
        raise TraceError(f"{source.name} is empty", "give a log with one line per job")
    header = [field.strip().lower() for field in rows[0]]
    if header and not header[-1]:
        header.pop()  # sacct --parsable ends every line with a delimiter
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise TraceError(f"{source.name} names a column twice: {twice!r:.60}", "keep one of them")
    width = len(header)
    good = [row[:width] for row in rows[1:] if len(row) == width or (len(row) == width + 1 and not row[-1])]
    if short := len(rows) - 1 - len(good):
        lost[LENGTH] = lost.get(LENGTH, 0) + short
    columns = zip(*good, strict=True) if good else ((),) * width
    return Table(source.name, {n: [*map(str.strip, c)] for n, c in zip(header, columns, strict=True)}, lost)


def _rows(lines: Iterable[str], mark: str) -> tuple[list[list[str]], dict[str, int]]:
    """The rows that hold something; one that runs over several lines has lost its closing quote."""
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=True)
    rows: list[list[str]] = []
    broken = before = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error:
            broken += reader.line_num - before
        else:
            if reader.line_num - before > 1:
                broken += reader.line_num - before
            elif row and not row[0].startswith("#"):
                rows.append(row)
        before = reader.line_num
    return rows, {BROKEN: broken} if broken else {}
