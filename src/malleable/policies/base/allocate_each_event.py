"""A simulator program for policies that give only `allocate`: ask at every event, interpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.enforcement import one_each, proposal
from malleable.engine.rule_interface import (
    AGE,
    CLASS,
    HELD,
    IDENTITY,
    REMAINING,
    RESTARTS,
    SIZE,
    WEIGHT,
    JobProgram,
)
from malleable.model.jobs import Jobs

if TYPE_CHECKING:
    from malleable.contracts import FloatArray, Policy
    from malleable.model import Workload


def allocate_each_event(policy: Policy, workload: Workload, *, integer: bool = False) -> JobProgram:
    """A job rule that calls `policy.allocate`, for whole cores if asked to; jobs go by their numbers."""

    def rule(jobs: FloatArray, n: float, _table: FloatArray, out: FloatArray) -> None:
        present = Jobs(
            workload=workload,
            class_index=jobs[:, CLASS].astype(np.intp),
            remaining=np.maximum(jobs[:, REMAINING], 0.0),
            weight=jobs[:, WEIGHT].copy(),
            age=jobs[:, AGE].copy(),
            held=jobs[:, HELD].copy(),
            size=jobs[:, SIZE].copy(),
            restarts=jobs[:, RESTARTS].copy(),
            ids=tuple(map(str, jobs[:, IDENTITY].astype(np.intp).tolist())),
        )
        out[:] = one_each(proposal(policy.allocate(present, n, integer=integer)), len(out))

    rule.only_python = "it gives no rule, only allocate"  # type: ignore[attr-defined]
    return JobProgram(rule, np.zeros(1), sharing=policy.sharing, sees_all=policy.sees_all)
