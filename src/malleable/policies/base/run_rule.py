"""Run a job rule once, for `allocate`: interpreted for few jobs, compiled for many.

Compiled or not, a rule gives the same numbers to the bit. To load its machine code takes as long as to
interpret some ten thousand jobs (to compile it, once for all processes, longer), so a rule of this package is
compiled as soon as it was asked about that many in this process. Calls about a few jobs do not count: a
process that makes only these never loads the compiler. Rules from elsewhere run as they are.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.contracts import FloatArray

FEW = 64
"""Jobs that are interpreted in half a millisecond or less."""
MANY = 50_000
"""Jobs, in all calls about more than a few, that are interpreted in as long as machine code takes to load."""

_asked: Counter[Callable[..., None]] = Counter()
_machine_code: dict[Callable[..., None], Any] = {}


def run_rule(
    rule: Callable[..., None], rows: FloatArray, cores: float, table: FloatArray, out: FloatArray
) -> None:
    """Write the cores of each job into `out`; the rule may write into its table."""
    _fastest(rule, len(rows))(rows, cores, table, out)


def _fastest(rule: Callable[..., None], jobs: int) -> Callable[..., None]:
    if rule in _machine_code:
        return _machine_code[rule]  # type: ignore[no-any-return]
    if jobs <= FEW or not str(getattr(rule, "__module__", "")).startswith("malleable."):
        return rule
    _asked[rule] += jobs
    if _asked[rule] < MANY:
        return rule
    from malleable.engine.compiling import JOB_RULE, can_compile, compiled  # noqa: PLC0415 - loads the compiler

    if not can_compile():
        return rule
    return _machine_code.setdefault(rule, compiled(rule, JOB_RULE))  # type: ignore[no-any-return]
