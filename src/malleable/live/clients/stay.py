"""One stay of workers at a broker, from joining to leaving: a follower that sets their width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.live.clients.follower import Follower

if TYPE_CHECKING:
    from collections.abc import Callable

    from malleable.live.workers.contract import Workers


class Stay(Follower):
    """`threads` cores make a worker; at most `most` workers carry out units."""

    def __init__(
        self, workers: Workers, threads: int, most: int | None, on_cancel: Callable[[], None]
    ) -> None:
        super().__init__(threads, most)
        self._workers, self._on_cancel = workers, on_cancel
        self.done_before = workers.done

    def set_width(self, width: int) -> None:
        self._workers.set_width(width)

    def set_cpus(self, cpus: frozenset[int]) -> None:
        self._workers.set_cpus(cpus)

    def cancel(self) -> None:
        self._on_cancel()
