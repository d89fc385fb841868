"""Follow a submitted program to its end, also across restarts of the broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from malleable.live.broker.http_client import BrokenOffError, BrokerClient, NoBrokerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRESENT = frozenset(("queued", "running", "paused"))
"""States of a program that has not ended."""
PAUSE_SECONDS = 0.3
"""Seconds between two attempts to reach a broker that has gone away."""


def follow(
    job: str, stream: Literal["out", "err"] = "out", *, offset: int = 0, path: Path | None = None
) -> Iterator[bytes]:
    """What a program prints, until it has ended and all was read."""
    while True:
        try:
            with BrokerClient(path) as client:
                for block in client.log(job, stream, offset, follow=True):
                    offset += len(block)
                    yield block
                if client.job(job)["state"] not in PRESENT:
                    return
        except (NoBrokerError, BrokenOffError):
            pass
        time.sleep(PAUSE_SECONDS)


def at_the_end(job: str, path: Path | None = None) -> dict[str, Any]:
    """What has become of a program that has ended; waits for a broker that can say so."""
    while True:
        try:
            with BrokerClient(path) as client:
                return client.job(job)
        except (NoBrokerError, BrokenOffError):
            time.sleep(PAUSE_SECONDS)


def exit_status(ended: dict[str, Any]) -> int:
    """The status of a program as shells have it: 128 + n after signal n, 1 if it was never started."""
    code = ended.get("exit_code")
    return 1 if code is None else 128 - code if code < 0 else int(code)
