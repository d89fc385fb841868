"""What the scheduler asks of jobs.

Every action says how many cores the job may use from now on, and has a number that rises with every action to
the same job. A job carries its actions out in order and answers each with `Confirmed(job, cores, number)`
as soon as the number of cores that it uses has changed; one that gives cores back little by little may answer
several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Action:
    """From now on `job` may use so many cores."""

    job: str
    cores: int
    number: int

    def to_dict(self) -> dict[str, Any]:
        """The action as a plain document."""
        return {
            "action": type(self).__name__.lower(),
            "job": self.job,
            "cores": self.cores,
            "number": self.number,
        }


class Start(Action):
    """Begin, on so many cores."""

    __slots__ = ()


class Grant(Action):
    """Use more cores, or go on after a `Stop`."""

    __slots__ = ()


class Shrink(Action):
    """Give cores back until so many are in use."""

    __slots__ = ()


class Stop(Action):
    """Give all cores back and wait."""

    __slots__ = ()
