"""Reading measurements: tables of runs, of curves and of step times, and `1@3600,2@1800,4@900`.

- `cores,time` or `cores,throughput`: one line per run, in any order; further columns are left aside.
- A first column with names and columns `1,2,4,…`: one line per curve, of throughputs; blank or 0 means not
  measured.
- `num_replicas,local_bsz,step_time`, as in the artifact of Pollux: the throughput of a run is
  num_replicas·local_bsz/step_time. Each local batch size is a row, and `best` takes the best of each width.

Lines that start with # are comments.
"""

from __future__ import annotations

import csv
import re
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import MeasurementError, ParameterError, did_you_mean
from malleable.fitting.measurements import Measurements
from malleable.model.standard_input import standard_input

if TYPE_CHECKING:
    from collections.abc import Sequence

FORM = "give a header cores,time or cores,throughput and one line per run"
PAIRS = re.compile(r"\s*[^\s,@]+@[^\s,@]+(\s*,\s*[^\s,@]+@[^\s,@]+)*\s*")
STEPS = ("num_replicas", "local_bsz", "step_time")
BEST = "best"
NOT_MEASURED = ("", "0")

Line = tuple[int, list[str]]
Curve = list[tuple[float, float]]


def as_measurements(
    source: Any = None, times: Any = None, throughput: Any = None, row: str | None = None
) -> Measurements:
    """Measurements as users have them: read already, in a file or a text, or as numbers."""
    if source is None:
        return Measurements.of(times, throughput)
    if times is not None or throughput is not None:
        raise ParameterError("measurements are given twice", "give a file, times or throughput")
    return source if isinstance(source, Measurements) else read_measurements(source, row)


def read_measurements(source: str | Path, row: str | None = None) -> Measurements:
    """Read a file, - for standard input, or text such as 1@3600,2@1800; `row` picks one of several curves."""
    if isinstance(source, str) and PAIRS.fullmatch(source) and not Path(source).exists():
        pairs = [entry.split("@") for entry in source.split(",")]
        runs = [(_number(k, "cores", source), _number(t, "a time", source)) for k, t in pairs]
        return Measurements.of(times=runs, name="the command line")
    name = "the input" if str(source) == "-" else str(source)
    return parse_measurements(_text(source), name, row)


def parse_measurements(text: str, name: str = "the input", row: str | None = None) -> Measurements:
    """Read the text of a file of measurements."""
    lines = _lines(text, name)
    if not lines:
        raise MeasurementError(f"{name} is empty", FORM)
    header = [field.lower() for field in lines[0][1]]
    if {*STEPS} <= {*header}:
        return _picked(_step_curves(header, lines[1:], name), name, row)
    if "cores" in header:
        return _long(header, lines[1:], name)
    if len(header) > 1 and all(_is_number(field) for field in header[1:]):
        return _picked(_wide_curves(header, lines[1:], name), name, row)
    raise MeasurementError(f"{name} has no column 'cores': its first line is {', '.join(header)!r:.60}", FORM)


def _text(source: str | Path) -> str:
    try:
        if str(source) == "-":
            return standard_input().read()
        return Path(source).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        hint = "give a file, - for standard input, or runs such as 1@3600,2@1800,4@900"
        raise MeasurementError(f"there is no file {str(source)!r}", hint) from None
    except UnicodeDecodeError:
        raise MeasurementError(f"{source} is not a text file", FORM) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise MeasurementError(f"cannot read {str(source)!r}: {reason}") from None


def _lines(text: str, name: str) -> list[Line]:
    """Fields of all lines that hold something, with their numbers."""
    try:
        rows = enumerate(csv.reader(text.removeprefix("\ufeff").splitlines(), strict=True), 1)
        fields = [(number, [field.strip() for field in row]) for number, row in rows]
    except csv.Error as error:
        raise MeasurementError(f"{name} is not valid CSV: {error}", FORM) from None
    return [(number, row) for number, row in fields if any(row) and not row[0].startswith("#")]


def _long(header: Sequence[str], lines: Sequence[Line], name: str) -> Measurements:
    value = next((column for column in ("time", "throughput") if column in header), None)
    if value is None:
        raise MeasurementError(f"{name} has neither a column 'time' nor 'throughput'", FORM)
    runs = [
        tuple(_field(header, row, column, f"{name}, line {n}") for column in ("cores", value))
        for n, row in lines
    ]
    if not runs:
        raise MeasurementError(f"{name} has a header and no measurements", FORM)
    return Measurements.of(**{"times" if value == "time" else value: runs}, name=name)


def _wide_curves(header: Sequence[str], lines: Sequence[Line], name: str) -> dict[str, Curve]:
    """Throughputs, one line per curve; what is blank or 0 was not measured."""
    curves: dict[str, Curve] = {}
    for number, row in lines:
        place = f"{name}, line {number}"
        if len(row) > len(header):
            raise MeasurementError(f"{place} has more fields than the header", FORM)
        cells = zip(header[1:], row[1:], strict=False)
        curves[row[0]] = [
            (_number(k, "cores", name), _number(text, "a throughput", place))
            for k, text in cells
            if text not in NOT_MEASURED and _value(text) != 0.0
        ]
    return curves


def _step_curves(header: Sequence[str], lines: Sequence[Line], name: str) -> dict[str, Curve]:
    """Throughputs of step times: the best of each width, and those of each local batch size."""
    best: dict[float, float] = {}
    curves: dict[str, Curve] = {}
    for number, row in lines:
        k, batch, step = (_field(header, row, column, f"{name}, line {number}") for column in STEPS)
        rate = k * batch / step
        curves.setdefault(f"{batch:g}", []).append((k, rate))
        best[k] = max(rate, best.get(k, 0.0))
    return {BEST: sorted(best.items())} | dict(sorted(curves.items(), key=lambda item: float(item[0])))


def _picked(curves: dict[str, Curve], name: str, row: str | None) -> Measurements:
    """One of the curves of a file: the one that is named, or the first."""
    if not curves:
        raise MeasurementError(f"{name} has a header and no measurements", FORM)
    if row is not None and row not in curves:
        raise ParameterError(f"{name} has no row {row!r}", did_you_mean(row, curves))
    label = next(iter(curves)) if row is None else row
    made = Measurements.of(throughput=curves[label], name=f"{name}, row {label}")
    return Measurements(made.cores, made.rates, timed=False, name=made.name, row=label, rows=tuple(curves))


def _field(header: Sequence[str], row: Sequence[str], column: str, place: str) -> float:
    position = header.index(column)
    return _number(row[position] if position < len(row) else "", column, place)


def _number(text: str, what: str, place: str) -> float:
    value = _value(text)
    if not 0.0 < value < inf:
        raise MeasurementError(f"{place}: {what} must be a number above 0, got {text!r:.40}", FORM)
    return value


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _is_number(text: str) -> bool:
    return _value(text) == _value(text)
