"""Parquet files: the names of their columns, and those columns that a log can be made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from malleable.errors import TraceError, to_install

if TYPE_CHECKING:
    from malleable.traces.base.source import Source
    from malleable.traces.base.trace import Column


def parquet_names(source: Source) -> list[str]:
    """The names of all columns."""
    names: list[str] = list(_opened(source).schema_arrow.names)
    return names


def parquet_columns(source: Source) -> dict[str, Column]:
    """Columns of numbers, texts, dates and lengths of time, by names in small letters."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    file = _opened(source)
    known = [field.name for field in file.schema_arrow if _readable(field.type)]
    try:
        table = file.read(columns=known)
        return {name.lower(): _column(table.column(name).combine_chunks()) for name in known}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _broken(source, error) from None


def _opened(source: Source) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - ditto
    except ImportError:
        problem = f"{source.name} is a Parquet file, and pyarrow is not installed"
        raise TraceError(problem, to_install("traces")) from None
    try:
        return pq.ParquetFile(pa.BufferReader(source.data))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _broken(source, error) from None


def _broken(source: Source, error: Exception) -> TraceError:
    said = " ".join(str(error).split())
    return TraceError(f"{source.name} is not valid Parquet: {said:.80}", "copy or download it again")


def _readable(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415 - an extra

    simple = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_string)
    timed = (types.is_large_string, types.is_timestamp, types.is_duration, types.is_date, types.is_dictionary)
    return any(is_it(kind) for is_it in (*simple, *timed))


def _column(array: Any) -> Column:
    """Numbers, dates and lengths of time as an array, with NaN or NaT for null; the rest as texts."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import types  # noqa: PLC0415 - ditto

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_timestamp(kind) or types.is_date(kind):
        found: Any = _local(array).cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(found, dtype="datetime64[us]")
    if types.is_duration(kind):
        found = array.cast(pa.duration("us"), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(found, dtype="timedelta64[us]")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind):
        return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float)
    return ["" if text is None else str(text) for text in array.to_pylist()]


def _local(array: Any) -> Any:
    """Dates as a clock of their zone shows them."""
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra

    return pc.local_timestamp(array) if getattr(array.type, "tz", None) else array
