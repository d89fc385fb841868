"""What a broker tells a client, wherever the two are.

This module imports next to nothing: the supervisor of every program that runs has it in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from malleable.errors import MalleableError


class RefusedError(MalleableError):
    """The scheduler refused an event: it makes no sense, or came too late."""


@dataclass(frozen=True, slots=True)
class Order:
    """From now on `job` may use so many cores: the first of these CPUs (none are named where none are bound).

    The client answers with `Confirmed(job, cores, number)` whenever the number of cores it uses has changed.
    """

    job: str
    cores: int
    number: int
    cpus: tuple[int, ...] = ()


class LastOrder:
    """The last order to a job. Two may pass each other on their way: who carries them out takes each here."""

    __slots__ = ("order",)

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    @property
    def number(self) -> int:
        """That of the last order; -1 before the first one."""
        return -1 if self.order is None else self.order.number

    def take(self, order: Order) -> bool:
        """Whether an order is to be carried out; one that a later one has overtaken is dropped."""
        if order.number < self.number:
            return False
        self.order = order
        return True


@dataclass(frozen=True, slots=True)
class Held:
    """What a job has when it joins a broker anew: cores that it may be using, its age and its progress."""

    cores: int = 0
    cpus: tuple[int, ...] = ()
    age: float = 0.0
    units_done: float = 0.0
