"""Reading the jobs present from CSV or JSON: rows with id, class, remaining, optional weight, age, cores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import JobsError
from malleable.jobs import Jobs

if TYPE_CHECKING:
    from malleable.model import Workload

FORM = "give a header id,class,remaining (optional weight, age, cores) and one line a job"


def read_jobs(workload: Workload, source: str | Path) -> Jobs:
    """Read the jobs of a CSV or JSON file."""
    try:
        text = Path(source).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise JobsError(
            f"there is no file {str(source)!r}", "give a CSV or JSON file, or - for input"
        ) from None
    except OSError as error:
        raise JobsError(f"cannot read {str(source)!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise JobsError(f"{source} is not a text file", FORM) from None
    return parse_jobs(workload, text, str(source))


def parse_jobs(workload: Workload, text: str, source: str = "the input") -> Jobs:
    """Read jobs from text: a JSON list of rows, or CSV with a header."""
    if not text.strip():
        raise JobsError(f"{source} is empty", FORM)
    rows = _json_rows(text, source) if text.lstrip()[0] in "[{" else _csv_rows(text, source)
    if not rows:
        raise JobsError(f"{source} holds no jobs", FORM)
    return Jobs.from_rows(workload, rows)


def _json_rows(text: str, source: str) -> list[Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JobsError(f"{source} is not valid JSON: {error}") from None
    rows = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise JobsError(f"{source} must be a list of jobs, or a table with a list 'jobs'")
    return rows


def _csv_rows(text: str, source: str) -> list[dict[str, str]]:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
        header = [name.strip() for name in reader.fieldnames or []]
        if len(set(header)) < len(header):
            raise JobsError(f"{source} names a column twice: {', '.join(header)[:60]}", FORM)
        reader.fieldnames = header
        rows = list(reader)
    except csv.Error as error:
        raise JobsError(f"{source} is not valid CSV: {error}", FORM) from None
    for number, row in enumerate(rows, start=2):
        if None in row:
            raise JobsError(f"{source}, line {number}: more fields than the header has columns", FORM)
    return [{key: (value or "").strip() for key, value in row.items()} for row in rows]
