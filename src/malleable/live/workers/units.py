"""Units of work: how they are packed, how they fail, and how many small ones travel together.

A unit is a call of a function, packed where it is submitted. Functions and classes of `__main__`, lambdas and
closures are packed by value (cloudpickle), so a script needs no `if __name__ == "__main__"`, and a notebook
works (`functions`). Workers keep plain functions that they have unpacked; anything else is unpacked afresh
for each unit.

Small units share a message. A message holds so many that, by the time their function took lately, they take
`BATCH_SECONDS`; a worker whose units take longer than expected hands the rest back after its `LIMIT_SECONDS`.
So a change of width is in force within one unit and that limit, whatever was expected.
"""

from __future__ import annotations

import logging
import pickle
import sys
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError
from malleable.live.workers.functions import PackedFunction

if TYPE_CHECKING:
    from malleable.live.workers.broken import BrokenUnitError

BATCH_SECONDS = 0.010
SMALL_SECONDS = 0.005
"""Units that take longer travel alone."""
LARGEST_BATCH = 32
RETRIES = 3
"""How often a unit is run again whose worker died."""
REMEMBERED = 256
"""Functions whose times are remembered."""
LOGGER = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Unit:
    """One call: what a worker is sent, and the future that its caller holds."""

    function: PackedFunction
    arguments: bytes
    number: int
    kept: object = None
    """What has to be alive here until the unit is done: see `with_managed_objects`."""
    future: Future[Any] = field(default_factory=Future)
    deaths: int = 0
    started: bool = False

    def start(self) -> bool:
        """Note that it is about to run; False if it was cancelled before."""
        self.started = self.started or self.future.set_running_or_notify_cancel()
        return self.started

    def broken(self, cause: str, hint: str) -> BrokenUnitError:
        from malleable.live.workers.broken import BrokenUnitError  # noqa: PLC0415 - see there

        problem = f"unit {self.number} ({self.function.name}) was run {self.deaths} times: {cause} each time"
        return BrokenUnitError(problem, hint)


def with_managed_objects(arguments: object) -> object:
    """The arguments, if objects of a `multiprocessing.Manager` may be among them; else nothing.

    A Manager ends an object to which no process refers, so one that a caller has made for a unit must be
    referred to here until the unit has it. Other arguments are not kept: their packed form is enough.
    """
    return arguments if "multiprocessing.managers" in sys.modules else None


class UnitTimes:
    """How long units of each function take. It believes a longer one at once, and shorter ones slowly."""

    def __init__(self) -> None:
        self._seconds: OrderedDict[bytes, float] = OrderedDict()

    def note(self, unit: Unit, seconds: float) -> None:
        key = unit.function.key
        before = self._seconds.pop(key, seconds)
        self._seconds[key] = max(seconds, 0.8 * before + 0.2 * seconds)
        if len(self._seconds) > REMEMBERED:
            self._seconds.popitem(last=False)

    def batch(self, function: PackedFunction) -> int:
        """How many units of a function make a message; one if they are long, or unknown."""
        seconds = self._seconds.get(function.key, SMALL_SECONDS)
        if seconds >= SMALL_SECONDS:
            return 1
        return max(1, min(LARGEST_BATCH, int(BATCH_SECONDS / max(seconds, 1e-6))))


def answer(unit: Unit, packed: memoryview, *, good: bool) -> None:
    """Hand the outcome of a unit to its future: a result, or an error with its traceback as the cause."""
    unit.kept = None
    try:
        outcome = pickle.loads(packed)  # noqa: S301 - from our worker
    except BaseException as error:  # noqa: BLE001 - a foreign class may even raise SystemExit here
        problem = f"the result of {unit.function.name} cannot be read: {error!s:.200}"
        good, outcome = False, (ExecutionError(problem, "return plain data: numbers, lists, arrays"), None)
    try:
        if good:
            unit.future.set_result(outcome)
        else:
            raised, raised.__cause__ = outcome
            unit.future.set_exception(raised)
    except BaseException:  # a callback may raise SystemExit, which must not end the thread of the pool
        LOGGER.exception("a callback of unit %s (%s) raised an error", unit.number, unit.function.name)
