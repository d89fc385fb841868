"""A process without threads that forks the workers of a pool.

Forking a process that has threads may copy a lock that is held, and a user's process has threads: that of
the pool itself, and those of NumPy. A fork server is started once and has none. It
tells the pool how each worker ended, and ends with the pool; its workers end with it.
"""

from __future__ import annotations

import multiprocessing.process
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import traceback
from contextlib import suppress
from typing import IO

from malleable.execution.worker_loop import end_with
from malleable.live.workers import worker
from malleable.live.workers.channel import Channel

ORDER = struct.Struct("!ci")
START, KILL = b"s", b"k"
REPORT = struct.Struct("!cii")
STARTED, ENDED = b"s", b"e"
LARGEST_ORDER = 64


def serve(stdin: IO[bytes]) -> None:
    """Fork workers on demand until the pool is gone, as soon as it says how."""
    import cloudpickle  # noqa: F401, PLC0415 - once for all workers

    try:
        told = pickle.load(stdin)  # noqa: S301 - from our parent
    except EOFError:  # the pool has ended without a unit
        return
    sys.path[:] = told["path"]
    os.environ.clear()
    os.environ.update(told["environment"])
    if told["folder"] is not None:
        with suppress(OSError):
            os.chdir(told["folder"])
    end_with(told["parent"])
    multiprocessing.process.current_process().authkey = told["authkey"]
    control = socket.socket(fileno=told["control"])
    control.set_inheritable(False)
    _Server(control, told["threads"]).run()
    os._exit(0)  # the pool waits for the end, and there is nothing to tidy up


class _Server:
    """The workers that have been forked, by the number that the pool gave them."""

    def __init__(self, control: socket.socket, threads: int) -> None:
        self.control, self.threads = control, threads
        self.pids: dict[int, int] = {}
        self.ended, self.ends = socket.socketpair()
        self.ends.setblocking(False)
        self.ended.setblocking(False)
        signal.set_wakeup_fd(self.ends.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.control, selectors.EVENT_READ)
            selector.register(self.ended, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self.ended in ready:
                    self.ended.recv(4096)
                    self.reap()
                if self.control in ready and not self.obey():
                    return

    def obey(self) -> bool:
        """Carry out one order; False when there will be no other."""
        try:
            order, connections, _, _ = socket.recv_fds(self.control, LARGEST_ORDER, 1)
        except ConnectionResetError:  # the pool has ended without reading the last report
            return False
        if not order:
            return False
        what, number = ORDER.unpack(order)
        if what == START:
            os.set_inheritable(connections[0], False)
            self.fork(number, connections[0])
        elif number in self.pids:
            os.kill(self.pids[number], signal.SIGKILL)
        return True

    def fork(self, number: int, connection: int) -> None:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.become_worker(server, connection)
        os.close(connection)
        self.pids[number] = pid
        self.report(STARTED, number, pid)

    def become_worker(self, server: int, connection: int) -> None:
        """Be a worker, and never come back."""
        status = 1
        try:
            end_with(server)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for ours in (self.control, self.ended, self.ends):
                ours.close()
            worker.work(Channel(socket.socket(fileno=connection), blocking=True), self.threads)
            status = 0
        except Exception:  # noqa: BLE001 - this process has no caller to raise it to
            traceback.print_exc()
        finally:
            worker.end(status)

    def reap(self) -> None:
        for number, pid in list(self.pids.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                del self.pids[number]
                self.report(ENDED, number, os.waitstatus_to_exitcode(status))

    def report(self, what: bytes, number: int, value: int) -> None:
        with suppress(OSError):  # the pool is gone, which the next order shows
            self.control.send(REPORT.pack(what, number, value))
