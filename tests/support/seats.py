"""A seat at no broker: it remembers what a client says, for tests that give the orders themselves."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from malleable.live.core.orders import Order
from support.living import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Seat:
    """A membership whose broker is the test."""

    job = "1"

    def __init__(self) -> None:
        self.confirmed: list[tuple[int, int]] = []
        self.reports: list[tuple[float, float | None]] = []
        self.endings: list[str] = []

    def confirm(self, cores: int, number: int) -> None:
        self.confirmed.append((cores, number))

    def progress(self, units_done: float, units: float | None = None) -> None:
        self.reports.append((units_done, units))

    def end(self, outcome: str) -> None:
        self.endings.append(outcome)


class Driven:
    """A client that runs in a thread, and is given orders here."""

    def __init__(self, client: Any, seat: Seat | None = None) -> None:
        self.client, self.seat = client, seat or Seat()
        self.ending: Future[Any] = Future()
        self.number = 0
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.ending.set_result(self.client.run(self.seat))
        except BaseException as error:  # noqa: BLE001 - it is the test's
            self.ending.set_exception(error)

    def order(self, cores: int, cpus: tuple[int, ...] = ()) -> int:
        """Give an order; its number."""
        self.number += 1
        self.client.obey(Order("1", cores, self.number, cpus))
        return self.number

    def obeyed(self, cores: int, cpus: tuple[int, ...] = ()) -> None:
        """Give an order, and wait until it is carried out."""
        answer = cores, self.order(cores, cpus)
        wait_until(lambda: answer in self.seat.confirmed, f"answer {answer}")


@contextmanager
def driven(client: Any, seat: Seat | None = None) -> Iterator[Driven]:
    """A client that is cancelled in the end, whatever it does then."""
    made = Driven(client, seat)
    try:
        yield made
    finally:
        client.cancel()
        made.thread.join(60.0)
        assert not made.thread.is_alive()
