"""Ask the user's broker, over its Unix socket: what the command line does. One method per question.

Each question has a connection of its own, whose other end is checked before anything is said.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

from malleable.errors import ExecutionError
from malleable.live.broker.broker_lock import holder
from malleable.live.broker.server.paths import SOCKET, runtime_folder, state_folder
from malleable.live.system.process_tree import is_at_work
from malleable.live.system.unix_socket import open_socket, peer_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

ALIVE_SECONDS = 3.0
"""Seconds in which a broker says that it is there; one that is stopped, or hangs, does not.

One that is at work, on a busy machine, is asked again for `ANSWER_SECONDS`.
"""
LISTEN_SECONDS = 4.0
"""Seconds that a broker is waited for which runs and does not listen: it starts, or makes its socket anew."""
PAUSE_SECONDS = 0.05
ANSWER_SECONDS = 60.0
"""Seconds that the broker has to answer: the first decision of a policy may have to be compiled."""
EVENT = b"data: "
BLOCK = 1 << 16
"""Bytes of an output that are read at once."""
NOT_THERE = (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)
"""What the system says where no process listens."""


class NoBrokerError(ExecutionError):
    """No broker answers."""

    def __init__(
        self, problem: str = "no broker runs", hint: str = "start one with `malleable serve`", path: Any = ()
    ) -> None:
        super().__init__(problem, hint, path)


class RefusalError(ExecutionError):
    """What the broker does not do, in its words."""


class BrokenOffError(ExecutionError):
    """The broker has gone away in the middle of an answer."""


class BrokerClient:
    """The broker behind a socket, by default the user's own; `NoBrokerError` if none runs, or it hangs."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = runtime_folder() / SOCKET if path is None else path
        folders = [self._path.parent, *([state_folder()] if path is None else [])]
        self._begun = time.monotonic()
        end = self._begun + LISTEN_SECONDS
        while (problem := self._problem()) is not None:
            who = next(filter(None, map(holder, folders)), None)
            if who is None:
                raise NoBrokerError
            if time.monotonic() > end:
                raise NoBrokerError(f"a broker runs ({who}), and {problem[0]}", problem[1])
            time.sleep(PAUSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Between two questions no connection is open."""

    def status(self) -> dict[str, Any]:
        """What the broker does right now."""
        return self._ask("GET", "/v1/status")

    def job_log(self) -> dict[str, Any]:
        """The jobs that came and went, as columns."""
        return self._ask("GET", "/v1/past-jobs")

    def jobs(self, ended: int = 20) -> list[dict[str, Any]]:
        """The jobs that are there, and the last programs that have ended."""
        found: list[dict[str, Any]] = self._ask("GET", f"/v1/jobs?ended={ended}")["jobs"]
        return found

    def job(self, job: str) -> dict[str, Any]:
        """One job."""
        return self._ask("GET", _place(job))

    def submit(self, request: Mapping[str, Any]) -> str:
        """Submit a program; its name."""
        return str(self._ask("POST", "/v1/jobs", request)["id"])

    def change_job(self, job: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Change the weight or the class of a job, or put it on hold."""
        return self._ask("PATCH", _place(job), change)

    def hold_each(self, jobs: Iterable[str], *, on_hold: bool) -> list[dict[str, Any]]:
        """Have jobs without cores, or let them go on; one for which that fails has an `error`."""
        return [self._each(job, partial(self.change_job, job, {"on_hold": on_hold})) for job in jobs]

    def cancel(self, job: str) -> dict[str, Any]:
        """Ask a job to end."""
        return self._ask("DELETE", _place(job))

    def cancel_each(self, jobs: Iterable[str]) -> list[dict[str, Any]]:
        """Ask jobs to end; one that cannot be asked has an `error`, and keeps none of the others from it."""
        return [self._each(job, partial(self.cancel, job)) for job in jobs]

    def _each(self, job: str, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The answer about one of several jobs."""
        try:
            return ask()
        except RefusalError as error:
            return {"id": job, "error": error.sentence, "hint": error.hint}

    def change_machine(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """Change the number of cores or the policy."""
        return self._ask("PATCH", "/v1/machine", change)

    def drain(self) -> dict[str, Any]:
        """Have no program start from now on."""
        return self._ask("POST", "/v1/drain")

    def log(
        self, job: str, stream: Literal["out", "err"] = "out", offset: int = 0, *, follow: bool = False
    ) -> Iterator[bytes]:
        """What a program has printed, from a place on; with `follow` until it has ended."""
        query = f"{_place(job)}/log?stream={stream}&offset={offset}&follow={str(follow).lower()}"
        with self._answer("GET", query, seconds=None) as answer:
            while block := answer.read1(BLOCK):
                yield block

    def events(self, most: int = 100) -> Iterator[dict[str, Any]]:
        """Status documents, as they change, with so many jobs at most, those with cores first."""
        with self._answer("GET", f"/v1/events?most={most}", seconds=None) as answer:
            for line in answer:
                if line.startswith(EVENT):
                    yield json.loads(line.removeprefix(EVENT))

    def _ask(self, method: str, place: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with self._answer(method, place, document) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    @contextmanager
    def _answer(
        self,
        method: str,
        place: str,
        document: Mapping[str, Any] | None = None,
        seconds: float | None = ANSWER_SECONDS,
    ) -> Iterator[HTTPResponse]:
        """The answer to a question, of which each part comes within so many seconds."""
        body = None if document is None else json.dumps(document)
        try:
            with self._connection(seconds) as connection:
                connection.request(method, place, body, {"Content-Type": "application/json"})
                with connection.getresponse() as answer:
                    _check(answer)
                    yield answer
        except NOT_THERE:
            raise NoBrokerError from None
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise BrokenOffError(
                f"the broker has gone away: {reason}", "look at `malleable status`"
            ) from None

    def _problem(self) -> tuple[str, str] | None:
        """Why no broker answers, and a hint; one that is there and silent is an error."""
        process = None
        try:
            with self._connection(ALIVE_SECONDS) as connection:
                process = peer_process(connection.sock)
                connection.request("GET", "/v1/alive")
                connection.getresponse().read()
        except (ConnectionResetError, BrokenPipeError, HTTPException):
            hint = "it is ending, or has too many connections: end some, or start it with more (`ulimit -n`)"
            return "closes new connections at once", hint
        except NOT_THERE:
            hint = "it is starting, ending, or making its socket anew: try again"
            return f"does not listen at {self._path}", hint
        except (TimeoutError, BlockingIOError):
            if process and is_at_work(process) and time.monotonic() < self._begun + ANSWER_SECONDS:
                return self._problem()
            raise _silent(holder(self._path.parent) if process is None else f"process {process}") from None
        except OSError as error:  # of another user, or a path that is none
            raise NoBrokerError(f"cannot reach a broker at {self._path}: {error}") from None
        return None

    @contextmanager
    def _connection(self, seconds: float | None) -> Iterator[HTTPConnection]:
        """A connection to a broker of this user, with so many seconds for each answer."""
        made = HTTPConnection("localhost")
        made.sock = open_socket(self._path)
        made.sock.settimeout(seconds)
        try:
            yield made
        finally:
            made.close()


def _silent(who: str | None) -> NoBrokerError:
    number = (who or "PID").rpartition(" ")[2]
    hint = f"it is stopped or hangs: `kill -CONT {number}` continues it, `kill -9 {number}` ends it alone"
    return NoBrokerError(f"the broker ({who or 'unknown'}) does not answer", hint)


def _place(job: str) -> str:
    """The path of a job, whatever its name is made of."""
    return f"/v1/jobs/{quote(job, safe='', errors='surrogateescape')}"


def _check(answer: HTTPResponse) -> None:
    """What the broker refused is an error here, in its words."""
    if answer.status < 400:
        return
    try:
        found = json.loads(answer.read())
        problem, hint = str(found["error"]), str(found["hint"])
    except (ValueError, KeyError, TypeError):
        problem, hint = f"the broker answers {answer.status}", "is it one of this malleable?"
    raise RefusalError(problem, hint)
