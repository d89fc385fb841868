"""Run a job rule once, for `allocate`: interpreted for few jobs, compiled for many.

Compiled or not, a rule gives the same numbers to the bit. To load its machine code takes about a second (to
compile it, once for all processes, longer), so a rule of this package is compiled as soon as this process has
interpreted it for that long, or is about to. Calls about a few jobs do not count: a process that makes only
these never loads the compiler. A process that cannot wait later says so beforehand (`load_rule`). Rules from
elsewhere run as they are.
"""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter
from typing import TYPE_CHECKING, Any

from malleable.catalog.families import is_ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

FEW = 64
"""Jobs that are interpreted in half a millisecond or so."""
PER_JOB = 1e-5
"""Seconds that it takes to interpret a rule of this package, for each job, at the least."""
LOADING = 1.0
"""Seconds that it takes to load the compiler and a rule's machine code."""

_spent: defaultdict[Callable[..., None], float] = defaultdict(float)
_machine_code: dict[Callable[..., None], Any] = {}


def run_rule(
    rule: Callable[..., None], rows: FloatArray, cores: float, table: FloatArray, out: FloatArray
) -> None:
    """Write the cores of each job into `out`; the rule may write into its table."""
    if rule in _machine_code:
        _machine_code[rule](rows, cores, table, out)
    elif len(rows) <= FEW or not is_trusted(rule):
        rule(rows, cores, table, out)
    elif _spent[rule] + len(rows) * PER_JOB >= LOADING and load_rule(rule):
        _machine_code[rule](rows, cores, table, out)
    else:
        start = perf_counter()
        rule(rows, cores, table, out)
        _spent[rule] += perf_counter() - start


def is_trusted(rule: Callable[..., None]) -> bool:
    """Whether a rule is of this package, and does not just call a user's function."""
    return is_ours(rule) and not hasattr(rule, "only_python")


def load_rule(rule: Callable[..., None]) -> bool:
    """Load or make the machine code of a rule of this package; whether that is allowed."""
    if rule in _machine_code or not is_trusted(rule):
        return rule in _machine_code
    from malleable.engine.compiling import JOB_RULE, can_compile, compiled  # noqa: PLC0415 - loads numba

    if can_compile():
        _machine_code[rule] = compiled(rule, JOB_RULE)
    return rule in _machine_code
