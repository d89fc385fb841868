"""Reading the jobs present from CSV or JSON: rows with id, class, remaining, and what else there is.

A CSV file is read in stretches of many lines and by columns, so that a million jobs take seconds and little
memory. A stretch with anything wrong in it is read again row by row, which finds and words the mistake.
"""

from __future__ import annotations

import csv
import io
import json
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.errors import JobsError, did_you_mean
from malleable.model.job_rows import (
    COLUMNS,
    LIMITS,
    NUMBERS,
    OPTIONAL,
    REQUIRED,
    in_range,
    read_limits,
    read_row,
)
from malleable.model.jobs import Jobs
from malleable.model.standard_input import standard_input

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray
    from malleable.model.workload import Workload

FORM = f"give a header id,class,remaining (optional {', '.join(OPTIONAL)}) and one line per job"
STRETCH = 1 << 10
"""Rows that are read at a time; many more would keep Python's garbage collector busy."""
DELIMITERS = ",;\t"


def read_jobs(workload: Workload, source: str | Path) -> Jobs:
    """Read the jobs of a CSV or JSON file, or of standard input if `source` is -."""
    if str(source) == "-":
        return stream_jobs(workload, standard_input())
    try:
        stream = Path(source).open(encoding="utf-8-sig", newline="")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise JobsError(
            f"there is no file {str(source)!r}", "give a CSV or JSON file, or - for input"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise JobsError(f"cannot read {str(source)!r}: {reason}") from None
    with stream:
        return stream_jobs(workload, stream, str(source))


def parse_jobs(workload: Workload, text: str, source: str = "the input") -> Jobs:
    """Read jobs from text: a JSON list of rows, or CSV with a header."""
    return stream_jobs(workload, io.StringIO(text, newline=""), source)


def stream_jobs(workload: Workload, stream: TextIO, source: str = "the input") -> Jobs:
    """Read jobs from an open file or pipe; nothing in it means no jobs."""
    try:
        skipped, first = next(filter(lambda line: line[1].strip("\ufeff \t\r\n"), enumerate(stream)), (0, ""))
        first = first.removeprefix("\ufeff")
        if not first:
            return Jobs.of(workload, [], [])
        if first.lstrip()[0] in "[{":
            return Jobs.from_rows(workload, _json_rows(first + stream.read(), source))
        return _csv_jobs(workload, chain([first], stream), skipped, source)
    except csv.Error as error:
        raise JobsError(f"{source} is not valid CSV: {error}", FORM) from None
    except UnicodeDecodeError:
        raise JobsError(f"{source} is not a text file", FORM) from None
    except OSError as error:
        raise JobsError(f"cannot read {source}: {error.strerror or error}") from None


def _json_rows(text: str, source: str) -> list[Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JobsError(f"{source} is not valid JSON: {error}") from None
    rows = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise JobsError(f"{source} must be a list of jobs, or a table with a list 'jobs'")
    return rows


class _Stretch(NamedTuple):
    """Some of the jobs, by columns, and whether a weight is given for any of them."""

    ids: list[str]
    classes: IntArray
    numbers: dict[str, FloatArray]
    weighted: bool
    limits: list[dict[str, Any]] | None


class _Place(NamedTuple):
    """How far a file was read: lines, and rows of jobs."""

    source: str
    lines: int
    rows: int


def _csv_jobs(workload: Workload, lines: Iterator[str], skipped: int, source: str) -> Jobs:
    first = next(lines)
    delimiter = max(DELIMITERS, key=lambda mark: len({*COLUMNS} & {*map(_unquoted, first.split(mark))}))
    form: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
    reader = csv.reader(chain([first], lines), **form)
    header = _checked_header(next(reader), source)
    parts, rest = _plain_parts(workload, header, delimiter, lines)
    read = sum(len(part.ids) for part in parts)
    place = _Place(source, skipped + reader.line_num + read, read)
    return _joined(workload, [*parts, *_other_parts(workload, header, csv.reader(rest, **form), place)])


def _unquoted(field: str) -> str:
    return field.strip().strip('"').strip()


def _plain_parts(
    workload: Workload, header: list[str], delimiter: str, lines: Iterator[str]
) -> tuple[list[_Stretch], Iterator[str]]:
    """The jobs of all lines up to quotes, gaps or a mistake, and the lines from there on."""
    parts: list[_Stretch] = []
    while some := list(islice(lines, STRETCH)):
        columns = _plain(some, delimiter, len(header))
        part = None if columns is None else _by_columns(workload, dict(zip(header, columns, strict=True)))
        if part is None:
            return parts, chain(some, lines)
        parts.append(part)
    return parts, iter(())


def _other_parts(workload: Workload, header: list[str], reader: Any, place: _Place) -> Iterator[_Stretch]:
    """The jobs of lines that have to be read with care; mistakes are found here."""
    source, before, number = place
    line = before
    while rows := list(islice(reader, STRETCH)):
        given = [row + [""] * (len(header) - len(row)) for row in rows if row]
        part = None
        if given and max(map(len, given)) == len(header):
            part = _by_columns(workload, dict(zip(header, zip(*given, strict=True), strict=True)))
        if part is not None:
            yield part
        elif given:
            raise _mistake(workload, header, rows, _Place(source, line, number))
        line, number = before + reader.line_num, number + len(given)


def _plain(lines: list[str], delimiter: str, width: int) -> list[list[str]] | None:
    """The columns of lines that can simply be cut at the delimiter; None if they cannot."""
    if set(map(str.count, lines, repeat(delimiter))) != {width - 1}:
        return None
    text = "".join(lines).replace("\r\n", "\n")
    if '"' in text or "\r" in text:
        return None
    fields = text.removesuffix("\n").replace("\n", delimiter).split(delimiter)
    return [fields[i::width] for i in range(width)]


def _checked_header(names: list[str], source: str) -> list[str]:
    header = [name.strip() for name in names]
    unknown = [name for name in header if name not in COLUMNS]
    if len(unknown) == len(header):
        raise JobsError(f"{source} has no header: its first line is {', '.join(header)!r:.60}", FORM)
    if unknown:
        hint = did_you_mean(unknown[0], COLUMNS)
        raise JobsError(f"{source} has an unknown column {unknown[0]!r:.60}", hint)
    if len(set(header)) < len(header):
        raise JobsError(f"{source} names a column twice: {', '.join(header)[:60]}", FORM)
    for name in REQUIRED:
        if name not in header:
            raise JobsError(f"{source} has no column {name!r}", FORM)
    return header


def _by_columns(workload: Workload, columns: Mapping[str, Sequence[str]]) -> _Stretch | None:
    """The jobs in these columns, or None if something is wrong with one of them."""
    texts = {name: list(map(str.strip, column)) for name, column in columns.items()}
    size = len(texts["id"])
    positions = {name: i for i, name in enumerate(workload.class_names)}
    classes = np.fromiter(map(positions.get, texts["class"], repeat(-1)), np.intp, size)
    if not (all(texts["id"]) and all(texts["remaining"]) and (classes >= 0).all()):
        return None
    numbers = {name: np.zeros(size) for name in NUMBERS if name in texts}
    numbers["weight"] = workload.holding_costs[classes]
    try:
        for name, column in numbers.items():
            _fill(column, texts.get(name, []))
    except ValueError:
        return None
    if not all(in_range(name, column).all() for name, column in numbers.items()):
        return None
    limits = None
    if any(any(texts.get(key, ())) for key in LIMITS):
        try:
            limits = _limits_by_rows(texts)
        except JobsError:
            return None
    return _Stretch(texts["id"], classes, numbers, any(texts.get("weight", [])), limits)


def _limits_by_rows(texts: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """What each job says of shape and widths."""
    keys = [key for key in LIMITS if key in texts]
    rows = zip(texts["id"], *(texts[key] for key in keys), strict=True)
    return [read_limits(job, dict(zip(keys, own, strict=True))) for job, *own in rows]


def _fill(numbers: FloatArray, texts: list[str]) -> None:
    """Write the numbers that are given over the defaults."""
    if all(texts):
        numbers[: len(texts)] = np.fromiter(map(float, texts), float, len(texts))
    elif any(texts):
        given = np.fromiter(map(len, texts), np.intp, len(texts)) > 0
        numbers[given] = np.fromiter(map(float, filter(None, texts)), float)


def _mistake(workload: Workload, header: list[str], rows: list[list[str]], place: _Place) -> JobsError:
    """What is wrong with the rows, and on which line."""
    source, line, number = place
    for row in rows:
        here = f"{source}, line {line + 1}"
        line += 1 + sum(field.count("\n") for field in row)
        if not row:
            continue
        if len(row) > len(header):
            return JobsError(f"{here}: more fields than the header has columns", FORM)
        padded = [*map(str.strip, row), *repeat("", len(header) - len(row))]
        try:
            read_row(number, dict(zip(header, padded, strict=True)), workload.class_names)
        except JobsError as error:
            return error.within(here)
        number += 1
    raise AssertionError("columns and rows disagree")


def _joined(workload: Workload, parts: list[_Stretch]) -> Jobs:
    """One set of jobs of all stretches."""
    if not parts:
        return Jobs.of(workload, [], [])
    given = parts[0].numbers
    numbers = {name: np.concatenate([part.numbers[name] for part in parts]) for name in given}
    return Jobs.of(
        workload,
        np.concatenate([part.classes for part in parts]),
        numbers["remaining"],
        weight=numbers["weight"] if any(part.weighted for part in parts) else None,
        age=numbers.get("age"),
        held=numbers.get("cores"),
        size=numbers.get("size"),
        restarts=numbers.get("restarts"),
        ids=list(chain.from_iterable(part.ids for part in parts)),
        limits=_joined_limits(parts),
    )


def _joined_limits(parts: list[_Stretch]) -> list[dict[str, Any]] | None:
    """Shapes and widths of all jobs; None where none brings any."""
    if all(part.limits is None for part in parts):
        return None
    return [own for part in parts for own in part.limits or [{} for _ in part.ids]]
