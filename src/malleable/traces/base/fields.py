"""Fields of a log as numbers: counts, times of day and date, lengths of time. NaN stands where there is none.

A column is a list of texts, or, from a Parquet file, an array of numbers, dates or lengths of time.
"""

from __future__ import annotations

import math
import re
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from malleable.contracts import FloatArray
    from malleable.traces.base.trace import Column

DATED = 5e8
"""Numbers of seconds above this count from 1970: no log is longer than fifteen years."""
ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
LENGTH = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)")
FEWEST = len("2026-01-01")


def numbers(texts: Column) -> FloatArray:
    """Each field as a number; lengths of time are seconds."""
    if isinstance(texts, np.ndarray):
        if texts.dtype.kind in "mM":
            return _seconds(texts)
        return texts.astype(float)
    try:
        return np.fromiter(map(float, texts), float, len(texts))
    except ValueError:
        return _each(_number, texts)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _each(read: Callable[[str], float], texts: Sequence[str]) -> FloatArray:
    """Every different text once: logs repeat themselves."""
    known = {text: read(text) for text in set(texts)}
    return np.fromiter((known[text] for text in texts), float, len(texts))


def _seconds(times: NDArray[Any]) -> FloatArray:
    """Dates or lengths of time of NumPy as seconds; dates count from 1970."""
    plain = times.astype(f"{times.dtype.kind}8[us]")
    return np.where(np.isnat(plain), np.nan, plain.astype(np.int64) / 1e6)


def moments(texts: Column) -> tuple[FloatArray, bool]:
    """Points in time in seconds, and whether they count from 1970: dates do, and large numbers.

    A date with a zone is taken as it is written: its hours are those on a clock there.
    """
    found = numbers(texts)
    if isinstance(texts, np.ndarray):
        given = found[np.isfinite(found)]
        return found, texts.dtype.kind == "M" or bool(len(given) and np.median(given) > DATED)
    given = found[np.isfinite(found)]
    if len(given):
        return found, bool(np.median(given) > DATED)
    return _dates(texts), True


def _dates(texts: Sequence[str]) -> FloatArray:
    plain = [ZONE.sub("", text) if len(text) > FEWEST else text for text in texts]
    some = [text if len(text) >= FEWEST else "NaT" for text in plain]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy ignores a zone in the wrong place
            known = np.array(some, dtype="datetime64[us]")
    except (ValueError, UserWarning):
        return _each(_date, plain)
    return np.where(np.isnat(known), np.nan, known.astype(np.int64) / 1e6)


def _date(text: str) -> float:
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def lengths(texts: Column, unit: float = 1.0) -> FloatArray:
    """Lengths of time in seconds: 1-02:03:04, 02:03:04, 03:04, or a number of units."""
    if isinstance(texts, np.ndarray):
        return numbers(texts) * (1.0 if texts.dtype.kind == "m" else unit)
    return _each(lambda text: _length(text, unit), texts)


def _length(text: str, unit: float) -> float:
    if found := LENGTH.fullmatch(text.strip()):
        days, hours, minutes, seconds = (float(part or 0.0) for part in found.groups())
        return ((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds
    return _number(text) * unit
