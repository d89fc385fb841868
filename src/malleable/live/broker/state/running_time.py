"""Time that has passed for a folder of programs, whatever the wall clock says.

How old things are must not depend on a clock that someone may set: one that is a month ahead would make all
outputs of the last month too old to keep. So ages are differences of the seconds counted here: by the
system's uptime, suspensions included, and from one start of the machine to the next by the wall clock, at
most a day of it. A machine that is off for long keeps things longer.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from malleable.live.programs.job_folder import this_boot

MOST_WHILE_OFF = 86400.0
"""Seconds that may have passed while the machine was off."""


class Moment(NamedTuple):
    """One instant: which start of the machine, its uptime, its wall clock, and the seconds counted so far."""

    boot: str
    uptime: float
    wall: float
    seconds: float


class RunningTime:
    """Counts on from the last moment that was noted, or from 0."""

    def __init__(self, last: Moment | None) -> None:
        boot, uptime, wall = _clocks()
        seconds = 0.0
        if last is not None:
            off = min(max(0.0, wall - last.wall), MOST_WHILE_OFF)
            seconds = last.seconds + (max(0.0, uptime - last.uptime) if boot == last.boot else off)
        self._zero = uptime - seconds

    def now(self) -> float:
        """Seconds that have passed."""
        return _clocks()[1] - self._zero

    def moment(self) -> Moment:
        """This instant, to count on from later."""
        boot, uptime, wall = _clocks()
        return Moment(boot, uptime, wall, uptime - self._zero)


def _clocks() -> tuple[str, float, float]:
    return this_boot(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
