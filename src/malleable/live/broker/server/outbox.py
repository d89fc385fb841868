"""What a client is still to be told.

Only the last order to a job counts, so only that one waits for a client that is slow to read.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.websockets import WebSocketDisconnect

from malleable.live.core.orders import LastOrder

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from malleable.live.core.orders import Order


class Outbox:
    """What a client is still to be told: the last order, and whether it is cancelled. Put from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._news = loop, asyncio.Event()
        self._lock = threading.Lock()
        self._last = LastOrder()
        self._unsent: Order | None = None
        self._cancel = False

    def put_order(self, order: Order) -> None:
        """Take an order, unless a later one is there."""
        with self._lock:
            if not self._last.take(order):
                return
            self._unsent = order
        self._wake()

    def put_cancel(self) -> None:
        self._cancel = True
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self._news.set)

    async def send_all(self, websocket: WebSocket) -> None:
        """Send what there is, as it comes, as long as the client is there."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                await self._news.wait()
                self._news.clear()
                with self._lock:
                    order, self._unsent = self._unsent, None
                    cancel, self._cancel = self._cancel, False
                if order is not None:
                    known = {"cores": order.cores, "number": order.number, "cpus": list(order.cpus)}
                    await websocket.send_json({"kind": "order", **known})
                if cancel:
                    await websocket.send_json({"kind": "cancel"})
