"""What the listeners of a pool are told: the width in force, the units that have ended, and idleness."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from malleable.live.system.listeners import tell


@dataclass
class Reports:
    """The listeners, and what they were told last; used by the thread of the pool only."""

    width: int
    on_width: Callable[[int], None] | None
    on_progress: Callable[[int], None] | None
    on_idle: Callable[[], None] | None
    idle_seconds: float
    _done: int = 0
    _busy: bool = False
    _idle_since: float | None = field(default_factory=time.monotonic)
    """None once it was told."""

    def tell_width(self, in_use: int, *, asked: bool) -> None:
        """Tell the width in force if it has changed, or if a width was asked for that it equals."""
        if in_use != self.width or asked:
            self.width = in_use
            tell(self.on_width, in_use)

    def tell_progress(self, done: int) -> None:
        if done != self._done:
            self._done = done
            tell(self.on_progress, done)

    def awake(self) -> None:
        """Something was asked of the pool: it counts as idle from now on at the earliest."""
        self._idle_since = time.monotonic()

    def tell_idle(self, *, idle: bool) -> None:
        """Tell of idleness, once, when it has lasted for long enough."""
        if self._busy and idle:
            self.awake()
        self._busy = not idle
        if idle and self.patience() == 0.0:
            self.end()

    def end(self) -> None:
        """Tell that there is no unit and, if the pool has ended, that there never will be one."""
        self._idle_since = None
        if self.on_idle is not None:
            tell(lambda listener: listener(), self.on_idle)

    def patience(self) -> float | None:
        """Seconds until idleness has lasted for long enough; None if it was told."""
        if self._idle_since is None or self.on_idle is None:
            return None
        return max(0.0, self._idle_since + self.idle_seconds - time.monotonic())
