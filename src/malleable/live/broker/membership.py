"""A job's seat at a broker, wherever that is: how every client joins, answers orders and leaves.

    seat = join(JobRequest("sweep", weight=2.0), on_order)
    seat.confirm(cores, number)      # the answer to every order
    seat.end("finished")

`join` takes the broker of the machine if one answers on its socket, else the one of this process
(`live.broker.embedded`), which is made when it is first needed. `broker=`, or the variable
`MALLEABLE_BROKER`, names the path of a socket to insist on, or `embedded`.

Orders come from any thread, and the first one may come before `join` returns. What a member says is
delivered in the order in which it was said; saying it takes no time, so `on_order` may do it.
"""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from malleable.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.broker.broker import Order

Outcome = Literal["finished", "failed", "cancelled", "withdrawn"]
EMBEDDED = "embedded"
VARIABLE = "MALLEABLE_BROKER"
CORES_VARIABLE = "MALLEABLE_EMBEDDED_CORES"
"""The most cores that the broker of a process divides, where it is not to have all."""

INSIDE_PROGRAM = {VARIABLE: EMBEDDED}
"""Variables for programs that are jobs themselves: Executors in them divide the program's own cores."""


def inside_unit(threads: int) -> dict[str, str]:
    """Variables for processes whose units may have Executors of their own.

    A unit that waits for such a job holds its core. Were both jobs of one broker, all cores could be held by
    units that wait for cores. So a unit's jobs are those of a broker of its own process, on its own cores.
    """
    return {**INSIDE_PROGRAM, CORES_VARIABLE: str(threads)}


PROCESS_NUMBERS = "/proc/self/ns/pid"
FIRST_NAMESPACE = 0xEFFFFFFC
"""The kernel's own number of the namespace that the machine starts with (`PROC_PID_INIT_INO`)."""
_numbers = itertools.count(1)


class Membership(Protocol):
    """A job's seat at a broker. No method waits, or raises an error because the broker is gone."""

    job: str

    def confirm(self, cores: int, number: int) -> None:
        """So many cores are in use, all orders up to `number` having been carried out."""

    def progress(self, units_done: float, units: float | None = None) -> None:
        """So many units are done in all; `units` corrects how many there are."""

    def end(self, outcome: Outcome) -> None:
        """The job uses no core any more; only the first call counts."""


@dataclass(frozen=True)
class JobRequest:
    """What a client says of its job; an empty `job` gets a name that no other job of the broker has."""

    job_class: str = "python"
    weight: float | None = None
    units: float | None = None
    size: float | None = None
    memory: float = 0.0
    never_pause: bool = False
    max_cores: int | None = None
    job: str = ""

    def named(self) -> JobRequest:
        """The same request, with a name."""
        if self.job:
            return self
        return replace(self, job=f"{self.job_class}-{os.getpid()}{_namespace()}-{next(_numbers)}")


def _namespace() -> str:
    """What tells processes of one number apart: containers that share a broker count theirs anew."""
    with suppress(OSError):
        if os.stat(PROCESS_NUMBERS).st_ino == FIRST_NAMESPACE:  # noqa: PTH116 - pathlib takes 3 ms to load
            return ""
    return f"-{os.urandom(3).hex()}"


def join(
    request: JobRequest,
    on_order: Callable[[Order], None],
    on_cancel: Callable[[], None] | None = None,
    *,
    broker: str | None = None,
) -> Membership:
    """Have a job counted by the broker of the machine, or by that of this process."""
    asked = broker or os.environ.get(VARIABLE) or None
    request = request.named()
    if asked != EMBEDDED:
        found = _remote(asked, request, on_order, on_cancel)
        if found is not None:
            return found
        if asked is not None:
            hint = "start one with `malleable serve`, or ask for the broker 'embedded'"
            raise ExecutionError(f"no broker answers on {asked}", hint)
    from malleable.live.broker import embedded  # noqa: PLC0415 - loads the scheduler, which few clients need

    return embedded.join(request, on_order, on_cancel)


def _remote(
    path: str | None,
    request: JobRequest,
    on_order: Callable[[Order], None],
    on_cancel: Callable[[], None] | None,
) -> Membership | None:
    """A seat at the broker behind a socket (that of the user's runtime folder); None if none answers."""
    try:
        from malleable.live.broker.remote import connect  # noqa: PLC0415 - loads the client of WebSockets
    except ImportError:  # without it no broker can run either
        return None
    return connect(path, request, on_order, on_cancel, meanwhile=_load_embedded)


def _load_embedded() -> None:
    """Have the broker of this process ready: it is needed if that of the machine does not answer."""
    import malleable.live.broker.embedded  # noqa: PLC0415, F401 - see `join`
