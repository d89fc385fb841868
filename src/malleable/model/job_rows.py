"""What one row of jobs may hold: the columns, and what is told of each mistake."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.errors import JobsError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

COLUMNS = ("id", "class", "remaining", "weight", "age", "cores")
REQUIRED = COLUMNS[:3]
NUMBERS = COLUMNS[2:]
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
    return Row(job, name, *read)  # type: ignore[arg-type]  # remaining is there


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
