"""Ask the user's broker, over its Unix socket: what the command line does. One method per question."""

from __future__ import annotations

import json
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

import httpx

from malleable.errors import ExecutionError
from malleable.live.server.paths import broker_socket
from malleable.live.unix_socket import open_socket

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ANSWER_SECONDS = 60.0
"""Seconds that the broker has to answer: the first decision of a policy may have to be compiled."""
EVENT = "data: "
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nothing is encrypted on a socket of this machine, and to read all that a machine trusts takes 20 ms."""


class NoBrokerError(ExecutionError):
    """No broker runs."""

    def __init__(
        self, problem: str = "no broker runs", hint: str = "start one with `malleable serve`", path: Any = ()
    ) -> None:
        super().__init__(problem, hint, path)


class BrokenOffError(ExecutionError):
    """The broker has gone away in the middle of an answer."""


class BrokerClient:
    """The broker behind a socket, by default the user's own; `NoBrokerError` if none runs."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = broker_socket() if path is None else path
        try:
            open_socket(self._path).close()
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise NoBrokerError from None
        except OSError as error:  # of another user, or a path that is none
            raise NoBrokerError(f"cannot reach a broker at {self._path}: {error}") from None
        transport = httpx.HTTPTransport(uds=str(self._path), verify=NO_CERTIFICATES)
        self._http = httpx.Client(transport=transport, base_url="http://localhost", timeout=ANSWER_SECONDS)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self) -> dict[str, Any]:
        """What the broker does right now."""
        return self._ask("GET", "/v1/status")

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
        """Change the weight or the class of a job."""
        return self._ask("PATCH", _place(job), change)

    def cancel(self, job: str) -> dict[str, Any]:
        """Ask a job to end."""
        return self._ask("DELETE", _place(job))

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
        with self._stream(query) as response:
            yield from response.iter_raw()

    def events(self, most: int = 100) -> Iterator[dict[str, Any]]:
        """Status documents, as they change, with so many jobs at most, those with cores first."""
        with self._stream(f"/v1/events?most={most}") as response:
            for line in response.iter_lines():
                if line.startswith(EVENT):
                    yield json.loads(line.removeprefix(EVENT))

    def _ask(self, method: str, place: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with _explained():
            found = self._http.request(method, place, json=document)
        _check(found)
        answer: dict[str, Any] = found.json()
        return answer

    @contextmanager
    def _stream(self, place: str) -> Iterator[httpx.Response]:
        quiet = httpx.Timeout(ANSWER_SECONDS, read=None)
        with _explained(), self._http.stream("GET", place, timeout=quiet) as response:
            if response.is_error:
                response.read()
            _check(response)
            yield response


def _place(job: str) -> str:
    """The path of a job, whatever its name is made of."""
    return f"/v1/jobs/{quote(job, safe='')}"


@contextmanager
def _explained() -> Iterator[None]:
    """Errors on the way, in one line."""
    try:
        yield
    except httpx.ConnectError:
        raise NoBrokerError from None
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        raise BrokenOffError(f"the broker has gone away: {reason}", "look at `malleable status`") from None


def _check(response: httpx.Response) -> None:
    """What the broker refused is an error here, in its words."""
    if not response.is_error:
        return
    try:
        found = response.json()
        problem, hint = str(found["error"]), str(found["hint"])
    except (ValueError, KeyError, TypeError):
        problem, hint = f"the broker answers {response.status_code}", "is it one of this malleable?"
    raise ExecutionError(problem, hint)
