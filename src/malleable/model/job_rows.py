"""What one row of jobs may hold: the columns, and what is told of each mistake."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.errors import JobsError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

LIMITS = ("shape", "width", "widths")
"""Columns that say what a job can run on, as the keys of a class do."""
REQUIRED = ("id", "class", "remaining")
NUMBERS = ("remaining", "weight", "age", "cores", "size", "restarts")
OPTIONAL = (*NUMBERS[1:], *LIMITS)
COLUMNS = (*REQUIRED, *OPTIONAL)
POSITIVE = "weight"
"""The column in which 0 is not allowed."""


class Row(NamedTuple):
    """A checked row; None stands for a number that was not given."""

    id: str
    name: str
    remaining: float
    weight: float | None
    age: float | None
    cores: float | None
    size: float | None
    restarts: float | None
    limits: dict[str, Any]
    """Shape, width and widths, those that are given."""


def read_row(number: int, row: Any, classes: Collection[str]) -> Row:
    """Check row `number` (from 0) and read it; the error names the row or the job, and the column."""
    if not hasattr(row, "keys"):
        raise JobsError(
            f"row {number + 1} is not a table: {row!r:.60}", f"known columns: {', '.join(COLUMNS)}"
        )
    for key in row:
        if key not in COLUMNS:
            raise JobsError(
                f"row {number + 1} has an unknown column {key!r:.60}", did_you_mean(str(key), COLUMNS)
            )
    for key in REQUIRED:
        if not _given(row.get(key)):
            raise JobsError(f"row {number + 1} has no {key!r}", "every job needs id, class and remaining")
    job, name = str(row["id"]), str(row["class"])
    if name not in classes:
        hint = did_you_mean(name, classes)
        raise JobsError(f"job {job!r}: the workload has no class {name!r}", hint)
    read = (_number(job, key, row[key]) if _given(row.get(key)) else None for key in NUMBERS)
    return Row(job, name, *read, limits=read_limits(job, row))  # type: ignore[arg-type, misc]  # remaining is there


def read_limits(job: str, row: Any) -> dict[str, Any]:
    """What a row says of shape and widths; text, as in CSV, has widths such as 1/2/4."""
    given = {key: row[key] for key in LIMITS if _given(row.get(key))}
    if isinstance(given.get("width"), str):
        given["width"] = _whole(_number(job, "width", given["width"]))
    widths = given.get("widths")
    if isinstance(widths, str) and widths[:1].isdigit():
        given["widths"] = [_whole(_number(job, "widths", part)) for part in widths.split("/")]
    return given


def _whole(number: float) -> float | int:
    return int(number) if number == int(number) else number


def _given(value: Any) -> bool:
    return value is not None and value != ""


def _number(job: str, key: str, value: Any) -> float:
    number = None if isinstance(value, bool) else _float(value)
    if number is None:
        hint = "write decimals with a point" if isinstance(value, str) and "," in value else ""
        raise JobsError(f"job {job!r}: {key!r} must be a number, got {value!r:.60}", hint)
    check_range(f"job {job!r}", key, number)
    return number


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def in_range(key: str, numbers: Any) -> Any:
    """Whether a number, or each of an array, may stand in the column."""
    return (numbers > 0.0 if key == POSITIVE else numbers >= 0.0) & (numbers < math.inf)


def check_range(job: str, key: str, number: float) -> None:
    """Refuse infinite and negative numbers, and weights of 0."""
    if not in_range(key, number):
        allowed = "a positive number" if key == POSITIVE else "a number of at least 0"
        raise JobsError(f"{job}: {key!r} must be {allowed}, got {number:g}", "mend that row")
