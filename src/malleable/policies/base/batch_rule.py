"""Policies of batch systems, which run every job on the cores that it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from malleable.engine.rule_interface import Program
from malleable.policies.base.job_rule import JobRule
from malleable.policies.rules.requests import requests_table

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload


class BatchRule(JobRule):
    """A job rule that reads what jobs ask for with `policies.rules.requests`."""

    whole_cores: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True

    def prepare(self, workload: Workload, cores: float) -> FloatArray:
        return requests_table(workload, cores)

    def requested(
        self, workload: Workload, cores: float, widths: FloatArray, estimates: FloatArray
    ) -> Program:
        """What a replay runs: the same rule, and each job asks for a width and a time of its own."""
        return Program(self.rule, requests_table(workload, cores, widths, estimates), sees_all=True)
