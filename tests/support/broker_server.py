"""A broker behind sockets in this process, and one in a process of its own, both in folders of their own."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from malleable.errors import ExecutionError
from malleable.live.broker.broker import Broker
from malleable.live.broker.http_client import BrokerClient
from malleable.live.broker.server.access import Access
from malleable.live.broker.server.app import make_app
from malleable.live.broker.server.listening import Server, loopback_listener, unix_listener
from malleable.live.broker.server.service import Service
from malleable.live.broker.server.session import Sessions
from malleable.live.broker.server.streams import Changes
from malleable.live.broker.state import Store
from malleable.live.core.orders import RefusedError
from malleable.live.core.scheduler import Scheduler
from malleable.model import paper_workload
from support.living import wait_until
from support.shell import PATIENCE, environment

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nothing is encrypted here, and to read all that a machine trusts takes 20 ms."""
TOKEN = "a-token-that-only-the-tests-know-of"


@contextmanager
def short_folder():
    """A folder with a short name: paths of sockets have 107 characters at most."""
    made = Path(tempfile.mkdtemp(prefix="m-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


class IdlePrograms:
    """Programs that are accepted, and never started: what is asked of them cannot do harm."""

    def __init__(self, broker, store):
        self.broker, self.store, self.seats, self.told = broker, store, {}, []
        self.folder = store.folder

    def submit(self, request):
        job = self.store.add(request).job
        try:
            self.broker.join(request.registered(job), lambda _order: None)
        except RefusedError:
            self.store.remove(job)
            raise
        return job

    def cancel(self, job):
        if self.store.get(job).state != "queued":
            raise RefusedError(f"there is no program {job!r} that has not ended")
        self.store.mark_ended(job, "cancelled")

    def output(self, job, stream):
        path = self.folder / f"{job}.{stream}"
        return path if path.is_file() else None

    def cpu_seconds(self, _job):
        return None

    def attach(self, job, ticket, on_order, _on_cancel):
        if self.store.get(job) is None or self.store.get(job).ticket != ticket:
            raise RefusedError("a wrong ticket")
        self.seats[job] = on_order
        from malleable.live.core.orders import Order

        return Order(job, 1, 1, (0,))

    def tell(self, event):
        self.told.append(event)

    def detach(self, job, on_order):
        assert self.seats.pop(job) == on_order

    def drain(self):
        """Nothing runs, unless a test says so."""

    present = 0


class BrokerThread:
    """A broker of the paper's classes under EQUI, with idle programs, behind sockets of this process."""

    def __init__(self, folder, cores=4, cpus=None, *, loopback=False):
        self.path, self.events = folder / "s", []
        self.broker = Broker(Scheduler(paper_workload(), cores, "equi"), cpus, on_change=self._note)
        self.store = Store(folder / "state")
        self.programs = IdlePrograms(self.broker, self.store)
        self.service = Service(self.broker, self.store, self.programs)
        self.changes = Changes(self.service.record)
        self.sessions = Sessions(self.broker, self.programs)
        self.app = Access(make_app(self.service, self.sessions, self.changes), TOKEN)
        self.server, self.port, self._loopback = None, None, loopback
        self.start()

    def _note(self, event):
        self.events.append(event)
        self.changes.touch()

    def start(self):
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _serve(self):
        self.loop, self.server = asyncio.get_running_loop(), Server(self.app, self._ready.set)
        watching = asyncio.create_task(self.changes.watch())
        with unix_listener(self.path) as unix, loopback_listener(0) as loopback:
            self.port = loopback.getsockname()[1]
            await self.server.serve([unix, loopback] if self._loopback else [unix])
        watching.cancel()

    def stop(self):
        """End the server as `malleable serve` does; the broker stays, to be looked at."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stop)
            self._thread.join()

    def _stop(self):
        self.sessions.close()
        self.changes.close()
        self.server.stop()

    def close(self):
        self.stop()
        self.broker.close()
        self.store.close()

    def jobs(self):
        return self.broker.state()["jobs"]

    @contextmanager
    def http(self):
        """A client on the Unix socket."""
        transport = httpx.HTTPTransport(uds=str(self.path), verify=NO_CERTIFICATES)
        with httpx.Client(transport=transport, base_url="http://localhost") as made:
            yield made


@contextmanager
def broker_thread(**options):
    """A broker in this process."""
    with short_folder() as folder:
        made = BrokerThread(folder, **options)
        try:
            yield made
        finally:
            made.close()


class ServeProcess:
    """`malleable serve` in a process of its own; `kill` and `start` it as often as you like."""

    def __init__(self, folder, *options, first=":"):
        self.home, self.state = folder / "home", folder / "state"
        self.path = self.home / "broker.sock"
        serve = [sys.executable, "-m", "malleable", "serve", *options]
        self._command = ["sh", "-c", f'{first}; exec "$@"', "sh", *serve]
        self.environment = {
            **environment(),
            "MALLEABLE_HOME": str(self.home),
            "MALLEABLE_STATE": str(self.state),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_STATE_HOME": str(folder / "xdg"),
        }
        self.environment.pop("MALLEABLE_BROKER", None)
        self.process, self.line = None, ""

    def start(self):
        """Start it, and wait for the line that says where it listens."""
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            env=self.environment,
            encoding="utf-8",
        )
        self.line = self.process.stdout.readline()
        assert self.line.startswith("dividing "), self.line

    def kill(self):
        """As a crash: SIGKILL."""
        self.process.kill()
        self._reap()

    def end(self):
        """As asked: SIGTERM; its status."""
        self.process.terminate()
        return self._reap()

    def _reap(self):
        try:
            return self.process.wait(PATIENCE)
        finally:  # also one that does not end is not left behind
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def run(self, *arguments, stdin="", folder=None):
        """`malleable ARGUMENTS`, at this broker."""
        return subprocess.run(
            [sys.executable, "-m", "malleable", *arguments],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            env=self.environment,
            cwd=folder or self.state.parent,
            timeout=PATIENCE,
            check=False,
        )


@contextmanager
def serve_process(*options, first=":"):
    """`malleable serve`, started behind a line of shell, and ended with all programs that it has left."""
    with short_folder() as folder:
        made = ServeProcess(folder, *options, first=first)
        made.start()
        try:
            yield made
        finally:
            if made.process.poll() is not None:
                made.start()
            cancel_programs(made.path)
            made.end()


def cancel_programs(path):
    """Have all programs of a broker end, and wait for that: their supervisors need their folders."""
    with BrokerClient(path) as client:

        def present():
            return [job["id"] for job in client.jobs(0) if job["kind"] != "client"]

        for job in present():
            with suppress(ExecutionError):  # it has just ended by itself
                client.cancel(job)
        wait_until(lambda: not present(), "the end of all programs")


def free_port():
    """A port of loopback that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
