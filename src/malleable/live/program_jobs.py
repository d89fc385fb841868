"""The broker's side of submitted programs: they wait, are started once, outlive the broker, and end once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    from malleable.live.broker import Broker, Order
    from malleable.live.events import Event
    from malleable.live.state import ProgramRequest, Store


class ProgramJobs:
    """Submitted programs as jobs of a broker; `recover` has to be called once, before anything else.

    Names of jobs are numbers (`"17"`), which no other client may take.
    """

    def __init__(self, broker: Broker, store: Store, folder: Path, socket_path: Path) -> None:
        raise NotImplementedError

    def recover(self) -> None:
        """Count again what an earlier broker left: running, ended meanwhile, queued."""
        raise NotImplementedError

    def submit(self, request: ProgramRequest) -> str:
        """Accept a program; it is on the disk and queued at the broker when this returns its name.

        Raises `RefusedError` (unknown class, too much memory, draining, queue full) and `StoreError`.
        """
        raise NotImplementedError

    def cancel(self, job: str) -> None:
        """Have a program end, or not start; `RefusedError` where there is none that has not ended."""
        raise NotImplementedError

    def attach(
        self, job: str, ticket: str, on_order: Callable[[Order], None], on_cancel: Callable[[], None]
    ) -> Order:
        """A supervisor is there: from now on orders go to it, beginning with the one returned.

        `RefusedError` for a wrong ticket or a job that is not there. A second supervisor takes the place of
        the first (the first connection may not have been noticed to be dead yet).
        """
        raise NotImplementedError

    def tell(self, event: Event) -> None:
        """What an attached supervisor says; as `Broker.tell`, and kept in the store."""
        raise NotImplementedError

    def detach(self, job: str, on_order: Callable[[Order], None]) -> None:
        """A supervisor's connection has ended: while its process lives, its job keeps its cores."""
        raise NotImplementedError

    def drain(self) -> None:
        """Start no queued program from now on, and accept none; what runs goes on to its end."""
        raise NotImplementedError

    def output(self, job: str, stream: Literal["out", "err"]) -> Path | None:
        """The file with what a program has printed; None while there is none, and for what is no program."""
        raise NotImplementedError

    def close(self) -> None:
        """End its thread; programs and their supervisors go on."""
        raise NotImplementedError
