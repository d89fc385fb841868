"""Results as pandas DataFrames: one row for each result and class, with flat column names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.errors import to_install
from malleable.results.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN = (
    *("policy", "cores", "load", "seed", "jobs", "warmup", "bound", "bound_tight", "bound_name", "gap"),
    *("utilisation", "effective_load"),
)
NOT_ASKED = {"mean": None, "low": None, "high": None}
REST = ("overload", "stable", "status", "events_per_second")


def rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The classes of a result's document as flat rows."""
    shared = {key: document[key] for key in (*RUN, *REST)} | _flat("cost", document["cost"])
    for key in ("bound_jobs", "gap_jobs"):
        shared |= _flat(key, document.get(key) or NOT_ASKED)
    return [
        {**shared, "class": c["name"], "class_jobs": c["jobs"], "present": c["present"]}
        | _flat("response_time", c["response_time"])
        | {f"response_time_{key}": c[key] for key in ("p50", "p95", "p99")}
        | _flat("slowdown", c["slowdown"])
        | _flat("width", c["width"])
        for c in document["classes"]
    ]


def frame(table: list[dict[str, Any]]) -> Any:
    """A DataFrame of rows."""
    try:
        import pandas as pd  # noqa: PLC0415 - heavy, and only needed here
    except ImportError:
        raise ResultError("to_frame needs pandas, which is not installed", to_install("frames")) from None
    return pd.DataFrame(table)


def _flat(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    return {name if key == "mean" else f"{name}_{key}": value for key, value in table.items()}
