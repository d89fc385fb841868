"""F-DATA, the workload of Fugaku, in Parquet: `adt` submission, `sdt` start, `edt` end, `nnuma` nodes.

Antici et al., *F-DATA: a Fugaku workload dataset for job-centric predictive modelling in HPC systems*, 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import TraceError
from malleable.traces.base import Columns, TraceFormat
from malleable.traces.base.fields import moments
from malleable.traces.base.table import header_of, read_table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.traces.base import Source
    from malleable.traces.base.table import Table

HINT = "the columns are jid,usr,jnam,adt,sdt,edt,nnuma and, if known, nnumr,elpl,duration"


@dataclass(frozen=True)
class FData(TraceFormat):
    """F-DATA of Fugaku (Parquet or CSV): jobs on whole nodes."""

    def fits(self, source: Source) -> bool:
        return {"adt", "sdt", "edt"} <= header_of(source)

    def columns(self, source: Source) -> Columns:
        table = read_table(source)
        submit, dated = moments(table.needed("adt", HINT, "adt"))
        return Columns(
            submit=submit,
            cores=_nodes(table),
            start=table.moments("sdt"),
            end=table.moments("edt"),
            duration=table.lengths("duration"),
            estimate=table.lengths("elpl"),
            user=table.words("usr"),
            application=table.words("jnam"),
            status=table.words("exit state"),
            ids=table.ids("jid"),
            unit="nodes",
            epoch=0.0 if dated else None,
            lost=table.lost,
        )


def _nodes(table: Table) -> FloatArray:
    """Nodes that a job had, or else asked for."""
    had, asked = table.number("nnuma"), table.number("nnumr")
    if had is None or asked is None:
        found = asked if had is None else had
        if found is None:
            raise TraceError(f"{table.name} has no column 'nnuma'", HINT)
        return found
    return np.where(had > 0.0, had, asked)
