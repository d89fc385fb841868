"""The workers of a pool, seen from the pool: started through the fork server, idle, busy, gone."""

from __future__ import annotations

import multiprocessing.process
import os
import pickle
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, cast

from malleable.errors import ExecutionError
from malleable.execution.thread_variables import VARIABLES
from malleable.live.broker.membership import inside_unit
from malleable.live.workers import fork_server
from malleable.live.workers.channel import Channel
from malleable.live.workers.functions import PackedFunction, Recent
from malleable.live.workers.units import Unit
from malleable.live.workers.worker import HEAD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DEPTH = "MALLEABLE_POOL_DEPTH"
"""The variable that tells a process how many pools it is inside of."""
DEEPEST = 2
"""A worker's pool may have workers, but their pools may not: a module that starts a pool when it is imported,
and is imported by its workers, would start processes without end."""
PROGRAM = """
import pickle, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal
sys.path[:] = pickle.load(sys.stdin.buffer)
from malleable.live.workers.fork_server import serve
serve(sys.stdin.buffer)
"""
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

    def send(self, function: PackedFunction, units: Collection[Unit]) -> None:
        """Send units, with their function unless the worker has it; without one, it is called once, first."""
        content = None
        if not self.functions.get(function.key):
            content = function.content
            self.functions.put(function.key, True, large=content.large)
        head = pickle.dumps((function.key, content, [(unit.number, len(unit.arguments)) for unit in units]))
        self.channel.send(HEAD.pack(len(head)), head, *(unit.arguments for unit in units))

    def awaits(self, pid: int, number: int) -> bool:
        """Whether an answer is that of this process, and to the unit that is in hand."""
        return self.pid in (0, pid) and bool(self.batch) and self.batch[0].number == number


class Server:
    """The fork server of a pool, if it runs, and the workers that it has forked.

    It takes most of the time until the first outcome to start, so it begins with the pool, and is told all
    that a unit may ask of its process (the environment, the folder) when there is a unit.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._begun: tuple[subprocess.Popen[bytes], socket.socket, socket.socket] | None = None
        """A server that waits to be told, and both ends of its socket."""
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self.control: socket.socket | None = None
        self.workers: dict[int, Worker] = {}
        self.cpus: frozenset[int] | None = None

    def start_worker(self) -> Worker:
        """Have a worker forked; it can be sent units at once, before it is there."""
        control = self.control or self.launch()
        ours, theirs = socket.socketpair()
        self._number += 1
        with theirs, suppress(OSError):  # a server that has died is noticed when its socket is read
            socket.send_fds(
                control, [fork_server.ORDER.pack(fork_server.START, self._number)], [theirs.fileno()]
            )
        worker = Worker(self._number, Channel(ours, blocking=False), idle_since=time.monotonic())
        self.workers[worker.number] = worker
        return worker

    def begin(self) -> None:
        """Have a server load what it needs; it ends with the thread that calls this."""
        if _depth() >= DEEPEST:
            raise ExecutionError(
                f"pools of workers are nested more than {DEEPEST} deep",
                "does a module start one when it is imported? put that under `if __name__ == '__main__':`",
            )
        with ExitStack() as opened, _explained():
            ours, theirs = map(opened.enter_context, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            process = subprocess.Popen(  # noqa: S603 - this interpreter, with a program of our own
                [sys.executable, "-c", PROGRAM],
                stdin=subprocess.PIPE,
                env=self._environment(),
                pass_fds=[theirs.fileno()],
            )
            opened.pop_all()
        self._begun = process, ours, theirs
        _tell(process, sys.path)

    def launch(self) -> socket.socket:
        """Have the server fork workers on demand; returns its socket."""
        if self._begun is None:
            self.begin()
        self._process, self.control, theirs = cast("Any", self._begun)
        self._begun = None
        told = {
            "path": sys.path,
            "environment": self._environment(),
            "folder": _folder(),
            "control": theirs.fileno(),
            "parent": os.getpid(),
            "threads": self._threads,
            # With it, units can use the objects of a `multiprocessing.Manager` of this process.
            "authkey": bytes(multiprocessing.process.current_process().authkey),
        }
        _tell(self._process, told)
        _tell_no_more(self._process)
        theirs.close()
        self.bind()
        return self.control

    def _environment(self) -> dict[str, str]:
        threads = dict.fromkeys(VARIABLES, str(self._threads))
        return {**os.environ, **threads, **inside_unit(self._threads), DEPTH: str(_depth() + 1)}

    def bind(self) -> None:
        """Have the server, and so its future workers, and those that are there, run on the given CPUs."""
        if self.cpus is not None and self._process is not None:
            from malleable.live.system.affinity import bind_family  # noqa: PLC0415 - after the server has begun

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
        if self._begun is not None:
            self._process, *connections = self._begun
            self._begun = None
            self._process.kill()  # it has not forked, and may still be about to start
            _tell_no_more(self._process)
            for connection in connections:
                connection.close()
        if self.control is not None:
            self.control.close()
        if self._process is not None:
            try:
                self._process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.control = self._process = None


def _tell(process: subprocess.Popen[bytes], what: object) -> None:
    """Send a server something; one that could not start is noticed when its socket ends."""
    with suppress(BrokenPipeError):
        pipe = cast("IO[bytes]", process.stdin)
        pipe.write(pickle.dumps(what))
        pipe.flush()


def _tell_no_more(process: subprocess.Popen[bytes]) -> None:
    with suppress(BrokenPipeError):
        cast("IO[bytes]", process.stdin).close()


@contextmanager
def _explained() -> Iterator[None]:
    """What the system refuses, in one line."""
    try:
        yield
    except OSError as error:
        raise ExecutionError(f"cannot start worker processes: {error.strerror or error}") from None


def _folder() -> str | None:
    """The folder that this process works in, if it is still there."""
    with suppress(OSError):
        return os.getcwd()  # noqa: PTH109 - pathlib is not loaded here
    return None


def _depth() -> int:
    said = os.environ.get(DEPTH, "")
    return int(said) if said.isdigit() else 0
