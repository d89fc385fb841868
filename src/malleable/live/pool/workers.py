"""The workers of a pool, seen from the pool: started through the fork server, idle, busy, gone."""

from __future__ import annotations

import pickle
import socket
import subprocess
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from malleable.errors import ExecutionError
from malleable.live.affinity import bind_family
from malleable.live.pool import fork_server
from malleable.live.pool.channel import Channel
from malleable.live.pool.functions import PackedFunction, Recent
from malleable.live.pool.units import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDING_SECONDS = 2.0
"""Seconds that the fork server has to end after its socket was closed."""


@dataclass(eq=False)
class Worker:
    """A worker process, the units that it has not answered (the one in hand first), and what is awaited.

    The fork server tells its `pid` soon after the start; it is 0 before.
    """

    number: int
    channel: Channel
    pid: int = 0
    batch: deque[Unit] = field(default_factory=deque)
    idle_since: float = 0.0
    events: int = 0
    answered: int = 0
    functions: Recent[bool] = field(default_factory=Recent)
    """Those that it has been sent, and keeps."""

    def send(self, function: PackedFunction, units: list[tuple[int, bytes]] | None) -> None:
        """Send numbers and arguments of units, with their function unless the worker has it.

        None stands for no unit: the function is to be called once, before the first one.
        """
        content = None
        if not self.functions.get(function.key):
            content = function.content
            self.functions.put(function.key, True, large=content.large)
        self.channel.send(pickle.dumps((function.key, content, units)))

    def awaits(self, pid: int, number: int) -> bool:
        """Whether an answer is that of this process, and to the unit that is in hand."""
        return self.pid in (0, pid) and bool(self.batch) and self.batch[0].number == number


class Server:
    """The fork server of a pool, if it runs, and the workers that it has forked."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self.control: socket.socket | None = None
        self.workers: dict[int, Worker] = {}
        self.cpus: frozenset[int] | None = None

    def start_worker(self) -> Worker:
        """Have a worker forked; it can be sent units at once, before it is there."""
        control = self.control or self._launch()
        ours, theirs = socket.socketpair()
        self._number += 1
        with theirs, suppress(OSError):  # a server that has died is noticed when its socket is read
            socket.send_fds(
                control, [fork_server.ORDER.pack(fork_server.START, self._number)], [theirs.fileno()]
            )
        worker = Worker(self._number, Channel(ours, blocking=False), idle_since=time.monotonic())
        self.workers[worker.number] = worker
        return worker

    def _launch(self) -> socket.socket:
        try:
            self._process, self.control = fork_server.launch(self._threads)
        except OSError as error:
            raise ExecutionError(f"cannot start worker processes: {error.strerror or error}") from None
        self.bind()
        return self.control

    def bind(self) -> None:
        """Have the server, and so its future workers, and those that are there, run on the given CPUs."""
        if self.cpus is not None and self._process is not None:
            bind_family(self._process.pid, self.cpus)

    def kill(self, worker: Worker) -> None:
        """Have the server kill a worker, which knows whether it is still there."""
        if self.control is not None:
            with suppress(OSError):
                self.control.send(fork_server.ORDER.pack(fork_server.KILL, worker.number))

    def ended(self) -> Iterator[tuple[Worker, int | None]]:
        """The workers that have ended, each with its exit code; None if the server ended with them."""
        while self.control is not None:
            try:
                report = self.control.recv(fork_server.REPORT.size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                report = b""
            if not report:
                self.close()
                yield from [(worker, None) for worker in self.workers.values()]
                self.workers.clear()
                return
            what, number, value = fork_server.REPORT.unpack(report)
            if what == fork_server.STARTED:
                self.workers[number].pid = value
            else:
                yield self.workers.pop(number), value

    def close(self) -> None:
        """End the server, and with it all workers."""
        if self.control is not None:
            self.control.close()
        if self._process is not None:
            try:
                self._process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.control = self._process = None
