"""A broker in a process of its own, which is killed and started again, and the programs submitted to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from malleable.live.programs.job_folder import JobFolder
from malleable.live.system.process_tree import processes, signal_family
from malleable.live.system.unix_socket import open_socket
from support.living import kill, wait_until
from support.shell import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVE = """\
import sys
from malleable.live.programs import program_jobs
from malleable.live.broker.server.run import Settings, serve
program_jobs.SETTLE_SECONDS = 0.1
serve(Settings(int(sys.argv[1]), sys.argv[2], bind=False), lambda _: print("ready", flush=True))
"""
ENDED = ("finished", "failed", "cancelled", "lost")


class BrokerError(AssertionError):
    """The broker answered with an error: its status, and what it said."""


class BrokerProcess:
    """A broker with folders of its own, whose cores are numbers only: there may be more than the machine has.

    Leaving the `with` ends it, all supervisors and their programs.
    """

    def __init__(
        self, folder: Path, cores: int = 2, *, policy: str = "equi", state: Path | None = None
    ) -> None:
        self.home, self.state = folder / "home", state or folder / "state"
        self._arguments = [str(cores), policy]
        self._environment = {
            **environment(), "MALLEABLE_HOME": str(self.home), "MALLEABLE_STATE": str(self.state),
        }  # fmt: skip
        self._log = folder / "broker.log"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE, *self._arguments], env=self._environment, text=True,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self._log.read_text()

    def kill(self) -> None:
        """End it as a power cut would, if not for the files."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as `systemctl stop` does."""
        self._end(signal.SIGTERM)

    def _end(self, signum: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(signum)
            self.process.wait(60.0)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def ask(self, method: str, path: str, document: Any = None) -> dict[str, Any]:
        """What the broker answers; an `OSError` or `HTTPException` if it is killed before it has."""
        connection = HTTPConnection("broker", timeout=60.0)
        connection.sock = open_socket(self.home / "broker.sock")
        try:
            text = None if document is None else json.dumps(document)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise BrokerError(answer.status, said)
        return dict(json.loads(said))

    def submit(self, *command: str, folder: Path | str = "/", **known: Any) -> str:
        """Submit a program."""
        document = {"command": command, "folder": str(folder), **known}
        return str(self.ask("POST", "/v1/jobs", document)["id"])

    def job(self, name: str) -> dict[str, Any]:
        """What the broker says of a program."""
        return self.ask("GET", f"/v1/jobs/{name}")

    def wait(self, jobs: Sequence[str], seconds: float = 120.0) -> list[dict[str, Any]]:
        """Wait for the end of programs; what the broker says of them then."""
        wait_until(lambda: all(self.job(name)["state"] in ENDED for name in jobs), f"end of {jobs}", seconds)
        return [self.job(name) for name in jobs]

    def folder(self, job: str) -> JobFolder:
        """The folder of a program."""
        return JobFolder(self.state / "jobs" / job)

    def supervisors(self) -> list[int]:
        """The supervisors of this broker that live: those that write to the log in a program's folder."""
        found = []
        for process in processes():
            with suppress(OSError):
                log = Path(f"/proc/{process.pid}/fd/2").readlink()
                if log.is_relative_to(self.state) and log.name.startswith("supervisor.log"):
                    found.append(process.pid)
        return found

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for pid in self.supervisors():
            kill(pid)
        for folder in (self.state / "jobs").glob("*"):
            name = JobFolder(folder).program()
            if name is not None and name.process() is not None:
                signal_family(name.pid, signal.SIGKILL)
        wait_until(lambda: not self.supervisors(), "end of all supervisors")
