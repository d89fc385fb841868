"""Which jobs of a log are malleable, moldable and rigid: as it says, or a share of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.errors import TraceError

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, IntArray
    from malleable.traces.base import Trace
    from malleable.traces.study.study import Study

SHAPES = ("malleable", "moldable", "rigid")
MALLEABLE, MOLDABLE, RIGID = range(3)
OF_THE_LOG = {"rigid": RIGID, "moldable": MOLDABLE, "malleable": MALLEABLE, "evolving": MALLEABLE,
              "adaptive": MALLEABLE}  # fmt: skip


def shapes_of(trace: Trace, study: Study, run_times: FloatArray | None) -> tuple[IntArray, tuple[str, ...]]:
    """The shape of each job, and in words how it was chosen."""
    if study.malleable is None and trace.shape is not None:
        return _said_by_log(trace), ("which jobs are malleable, moldable and rigid stands in the log",)
    share = (1.0 - study.moldable) if study.malleable is None else study.malleable
    if share == 1.0:
        return np.full(len(trace), MALLEABLE), ("every job can be resized at any time",)
    order = _order(trace, study, run_times)
    shapes = np.where(order < share, MALLEABLE, np.where(order < share + study.moldable, MOLDABLE, RIGID))
    counts = np.bincount(shapes, minlength=3)
    parts = ", ".join(f"{count:,} {name}" for name, count in zip(SHAPES, counts.tolist(), strict=True))
    how = {
        "jobs": f"drawn with seed {study.seed}",
        "users": f"all jobs of a user alike, drawn with seed {study.seed}",
        "widest": "the widest jobs first",
        "longest": "the longest jobs first",
    }
    return shapes, (f"the jobs are {parts}: {how[study.choose]}",)


def _said_by_log(trace: Trace) -> IntArray:
    assert trace.shape is not None  # noqa: S101 - asked before
    words = [OF_THE_LOG.get(word, MALLEABLE) for word in trace.shape.words()]
    return np.array(words, dtype=np.intp)


def _order(trace: Trace, study: Study, run_times: FloatArray | None) -> FloatArray:
    """A number in [0, 1) for each job; the lowest are malleable, then come the moldable ones.

    The same seed gives the same numbers, so that a larger share holds all jobs of a smaller one.
    """
    count = len(trace)
    rng = np.random.default_rng(study.seed)
    if study.choose == "users":
        if trace.user is None:
            raise TraceError(f"{trace.name} does not name users", "choose by jobs, widest or longest")
        return _places(rng.random(len(trace.user.names) + 1))[trace.user.codes]
    if study.choose == "jobs":
        return _places(rng.random(count))
    lengths = trace.size if run_times is None else run_times
    keys = trace.cores if study.choose == "widest" else lengths
    assert keys is not None  # noqa: S101 - a trace has sizes or run times
    return _places(-keys)


def _places(keys: FloatArray) -> FloatArray:
    """The rank of each key, as a share of all: a share p takes exactly round(p·count) of them."""
    ranks = np.empty(len(keys))
    ranks[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return (ranks + 0.5) / len(keys)
