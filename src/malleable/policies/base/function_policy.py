"""A bare Python function as a policy.

    def mine(jobs, cores, table, out): ...     a job rule: writes the cores of each job into `out`
    def mine(jobs, cores): ...                 returns the cores of each job

`jobs` is the array of `engine.rule_interface`, earliest arrival first; `table` holds the encoded speedups of
the classes (`engine.speedup_table.speed(table, i, k)` reads them).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from malleable.engine.enforcement import one_each
from malleable.errors import ParameterError, WorkloadError
from malleable.policies.base.job_rule import JobRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

WRITES, RETURNS = 4, 2
"""Numbers of arguments of the two forms."""


@dataclass(frozen=True)
class Function(JobRule):
    """A user's function, of either form."""

    function: Any

    def check(self) -> None:
        hint = "write f(jobs, cores, table, out), or f(jobs, cores) that returns the cores of each job"
        if not callable(self.function):
            raise ParameterError(f"not a function: {self.function!r:.60}", hint)
        if self._arguments not in {WRITES, RETURNS}:
            raise ParameterError(f"{self.name} cannot be called as a policy", hint)

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return str(getattr(self.function, "__name__", "the function"))

    @property
    def sharing(self) -> bool:  # type: ignore[override]
        """Whether it says, by an attribute `sharing`, that it gives out parts of a core."""
        return bool(getattr(self.function, "sharing", False))

    @property
    def sees_all(self) -> bool:  # type: ignore[override]
        """Whether it says, by an attribute `sees_all`, that it wants to see jobs that cannot move now."""
        return bool(getattr(self.function, "sees_all", False))

    @property
    def period(self) -> float:
        """How often it wants to be asked, by an attribute `period`; 0: at arrivals and departures."""
        return float(getattr(self.function, "period", 0.0))

    @property
    def returns(self) -> bool:
        """Whether the function returns the cores instead of writing them."""
        return self._arguments == RETURNS

    @property
    def _arguments(self) -> int:
        for count in (WRITES, RETURNS):
            try:
                inspect.signature(self.function).bind(*range(count))
            except TypeError:
                continue
            except ValueError:  # a builtin without a signature
                return 0
            return count
        return 0

    @cached_property
    def rule(self) -> Callable[[FloatArray, float, FloatArray, FloatArray], None]:
        """The function itself, or one that writes down what it returns."""
        if not self.returns:
            return self.function  # type: ignore[no-any-return]

        def rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:  # noqa: ARG001
            out[:] = one_each(self.function(jobs.copy(), cores), len(out))

        rule.only_python = "it returns the cores instead of writing them into out"  # type: ignore[attr-defined]
        return rule

    def parameters(self) -> dict[str, Any]:
        raise WorkloadError(
            f"a Python function cannot be written to a document: {self.function!r:.60}",
            "name it as 'file.py:name'",
        )
