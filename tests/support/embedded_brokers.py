"""Embedded brokers for tests: any number of cores, which are bound to no CPU."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from malleable.live.broker import embedded
from malleable.live.broker.broker import Broker
from malleable.live.core.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def embedded_broker(cores: int, policy: str = "equi", **options) -> Iterator[Broker]:
    """Have what joins in this process join a broker of so many cores."""
    embedded.close()
    broker = Broker(Scheduler(None, cores, policy, **options))
    embedded._current = embedded.EmbeddedBroker(broker)
    try:
        yield broker
    finally:
        embedded.close()


def jobs_of(broker: Broker) -> dict:
    """The jobs present."""
    return broker.state()["jobs"]
