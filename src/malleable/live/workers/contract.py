"""What carries out units, as an Executor sees it: processes of this machine, or an engine elsewhere.

An engine is one file of `live/engines`, with a function `start(options, listeners)` that returns `Workers`.
It decides where a unit runs and how it gets there; a width, which follows what the broker grants, says how
many units are in hand at a time. `tests/live/engines` says what every engine has to keep to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from malleable.errors import UnsupportedError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

LOCAL = "local"


@dataclass(frozen=True)
class Listeners:
    """What workers tell, in a thread of theirs; a listener returns quickly, and may call their methods.

    `on_width(k)`: k units are in hand at most from now on. It is told when a width that was set is in force,
    and as units end that were started at a larger one. `on_progress(done)`: so many units have ended in all.
    `on_idle()`: no unit has waited or been in hand for `idle_seconds`, or the workers have ended.
    """

    on_width: Callable[[int], None] | None = None
    on_progress: Callable[[int], None] | None = None
    on_idle: Callable[[], None] | None = None
    idle_seconds: float = 0.0


@dataclass(frozen=True)
class WorkerOptions:
    """What each worker is like.

    Its libraries use `threads` threads. It calls `initializer(*initargs)` before its first unit, and another
    one takes its place after `max_tasks_per_child` units.
    """

    threads: int = 1
    initializer: Callable[..., object] | None = None
    initargs: tuple[Any, ...] = ()
    max_tasks_per_child: int | None = None


class Workers(Protocol):
    """Carries out units, `width` of them at a time; every method may be called from any thread.

    A unit that was submitted is carried out once, unless it is cancelled before; one whose worker is lost is
    carried out again, a few times at most, and then it fails with a `BrokenUnitError`. Units begin in the
    order in which they were submitted.
    """

    @property
    def width(self) -> int:
        """How many units may be in hand; it begins with 0."""

    @property
    def width_in_use(self) -> int:
        """How many units are in hand at most: larger than `width` until enough of them have ended."""

    @property
    def done(self) -> int:
        """How many units have ended, whatever came of them; cancelled ones do not count."""

    @property
    def idle(self) -> bool:
        """Whether no unit waits or is in hand."""

    def set_width(self, width: int) -> None:
        """Have so many units in hand at a time: at 0 none begins."""

    def set_cpus(self, cpus: Iterable[int]) -> None:
        """Carry units out on these CPUs of this machine; nothing to do for an engine elsewhere."""

    def pack(self, function: Callable[..., Any]) -> Any:
        """Make a function ready to be sent, for any number of units; what cannot be is an error."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Take a unit; what cannot be sent is an error of the future. A RuntimeError after `close`."""

    def submit_packed(self, function: Any, args: Any, kwargs: Any) -> Future[Any]:
        """Take a unit of a function that was packed."""

    def window(self, function: Any) -> int:
        """How many units of a packed function keep the workers busy, with those that wait."""

    def cancel_waiting(self) -> None:
        """Cancel the units that wait now, and go on."""

    def close(self, *, cancel: bool = False) -> None:
        """Take no more units, and end when there are none left; those that wait may be cancelled."""

    def kill_workers(self) -> None:
        """End now: units that wait or are in hand are cancelled."""

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it has come. A forked process does not wait for its parent's workers."""


def start_workers(engine: str, options: WorkerOptions, listeners: Listeners) -> Workers:
    """Workers of an engine, by the name of its file in `live/engines`."""
    if engine != LOCAL and engine not in (known := engines()):
        raise UnsupportedError(f"there is no backend {engine!r:.40}", did_you_mean(str(engine), known))
    module = import_module(f"malleable.live.engines.{engine}")
    started: Workers = module.start(options, listeners)
    return started


def engines() -> list[str]:
    """The names of all engines."""
    from pkgutil import iter_modules  # noqa: PLC0415 - only for those that are not the local one

    from malleable.live import engines as folder  # noqa: PLC0415 - as above

    return sorted(module.name for module in iter_modules(folder.__path__))
