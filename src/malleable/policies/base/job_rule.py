"""Job rules: policies that look at every single job, as plain functions that the engine compiles.

A rule is `rule(jobs, cores, table, out)`. `jobs` has one row per job, earliest arrival first, with the
columns of `engine.rule_interface`; `table` is what `prepare` computed once; the cores of each job go into
`out`. A rule is plain Python over numbers, so the very same function runs here, interpreted or compiled
(`run_rule`), and compiled in the simulator. It may call other module-level functions of the same kind, such
as those of `policies.rules.ordering` and `engine.speedup_table`.

A table starts with the encoded speedups; the rule's own numbers follow at `int(table[1])`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from malleable.contracts import ANY, FloatArray, Need, Policy, not_a_class_rule
from malleable.engine.rule_interface import Program
from malleable.engine.speedup_table import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.model import Workload
    from malleable.theory.market import Buyers


class JobRule(Policy):
    """A policy given by a job rule.

    Subclasses are frozen dataclasses that set `rule = staticmethod(function)`, and override `prepare` if the
    rule needs more than the encoded speedups. `uses_speedups` says whether the rule reads the class of a job
    only to find its speedup; jobs that bring their own speedup are then taken as classes of their own.
    """

    rule: ClassVar[Any]
    """A staticmethod: `rule(jobs, cores, table, out)`."""

    @classmethod
    def lacks(cls) -> dict[str, str]:
        if hasattr(cls, "rule") or cls.program is not JobRule.program:
            return super().lacks()
        written = "rule = staticmethod(function), where function(jobs, cores, table, out) writes into out"
        return super().lacks() | {"a `rule`": written}

    @property
    def period(self) -> float | None:
        """Ask again at least this often; 0: at arrivals and departures only."""
        return 0.0

    def prepare(self, workload: Workload, cores: float) -> FloatArray:  # noqa: ARG002 - others need it
        """Everything slow, once: the numbers that the rule reads."""
        return encode(workload.speedups)

    def buyers(self, workload: Workload) -> Buyers | None:  # noqa: ARG002 - some have them
        raise not_a_class_rule(self)

    def program(self, workload: Workload, cores: float, need: Need = ANY) -> Program:  # noqa: ARG002
        return Program(
            self.rule,
            self.prepare(workload, cores),
            period=float(self.period or 0.0),
            sharing=self.sharing,
            sees_all=self.sees_all,
        )


def table_of(speedups: FloatArray, own: Sequence[float] | FloatArray) -> FloatArray:
    """Encoded speedups followed by a rule's own numbers."""
    return np.concatenate([speedups, np.asarray(own, dtype=float)])
