"""The supervisor of one submitted program: `python -m malleable.live.programs.supervisor FOLDER`.

A small process of its own, so that the program outlives the broker that had it started. It joins the broker
as the program's client, starts the command at the first grant, never a second time, follows orders, and
writes down how it ended. Without a broker it keeps what it was granted, goes on in its turn if it was paused
(`live.programs.turns`), and looks for the next one.

It imports as little as it can: there is one for every program that runs. SIGTERM cancels the program.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import MalleableError
from malleable.live.broker.membership import JobRequest
from malleable.live.programs.job_folder import JobFolder, Result
from malleable.live.programs.program_client import Command, Ending, ProgramClient
from malleable.live.programs.turns import Turn
from malleable.live.system.process_tree import adopt_orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from malleable.live.broker.membership import Membership

    Connect = Callable[[dict[str, Any], ProgramClient], Membership]

NOT_NEEDED = 75
"""Exit code of a supervisor that has nothing to do now: another one is there, no broker, or no room."""
CANNOT_START = 127
"""Exit code of a command that cannot be started, as shells have it."""
NO_BROKER_SECONDS = 60.0
"""Seconds without a broker after which a program that was not started is left to the next broker."""
PROBE_SECONDS = 5.0
RETRY_SECONDS = 1.0
"""Seconds between two attempts to write the result on a disk that takes none."""


def main(arguments: Sequence[str]) -> int:
    """Supervise the program of a folder; returns the exit code of this process."""
    return supervise(JobFolder(Path(arguments[0])), connect_to_broker, adopt_orphans())


def supervise(folder: JobFolder, connect: Connect, reaper: int | None = None) -> int:
    """Supervise a program, unless there is another supervisor or was one that started it."""
    try:
        if not folder.lock() or folder.started or folder.result() is not None:
            return NOT_NEEDED
        document = folder.request()
    except OSError as error:  # a full disk, or no file to be had
        sys.stderr.write(f"cannot supervise {folder.path} yet: {error}\n")
        return NOT_NEEDED
    client = _client(document, folder, reaper)
    signal.signal(signal.SIGTERM, lambda *_: client.cancel())
    seat = connect(document, client)
    try:
        ending = client.run(seat)
        reason = ""
    except MalleableError as error:
        reason = str(error)
        _complain(folder, reason)
        ending = Ending("failed", CANNOT_START)
    if ending is None:
        return NOT_NEEDED
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = used.ru_utime + used.ru_stime
    result = Result(*ending, client.started_at, client.time_now(), reason, cpu_seconds)
    _end(folder, seat, ending, result)
    return 0


def _client(document: dict[str, Any], folder: JobFolder, reaper: int | None) -> ProgramClient:
    words = Command(
        document["command"],
        Path(document["folder"]),
        document["environment"],
        document.get("on_resize"),
        document.get("max_cores"),
        document.get("stdin"),
        document.get("stdin_file"),
        document.get("most_output"),
    )
    turn = Turn(folder, Path(document["socket"]).parent)
    if document.get("form") != "build":
        return ProgramClient(words, folder, reaper, turn)
    from malleable.live.programs.build_client import BuildClient  # noqa: PLC0415 - other programs do without

    return BuildClient(words, folder, reaper, turn)


def connect_to_broker(document: dict[str, Any], client: ProgramClient) -> Membership:
    """A seat at the broker that listens at the socket, now or as soon as one does."""
    from malleable.live.broker.remote import connect  # noqa: PLC0415 - loads the client of WebSockets

    path, request = document["socket"], JobRequest(document["job_class"], job=document["job"])
    threading.Thread(target=_watch_broker, args=(path, client), daemon=True).start()
    seat = connect(path, request, client.obey, client.cancel, ticket=document["ticket"], insist=True)
    assert seat is not None  # noqa: S101 - it insists
    return seat


def _watch_broker(path: str, client: ProgramClient) -> None:
    """Give up a program that was not started when there has been no broker for a while."""
    from malleable.live.system.unix_socket import open_socket  # noqa: PLC0415 - as above

    seen = time.monotonic()
    while True:
        time.sleep(PROBE_SECONDS)  # most programs are started before that
        if client.started:
            return
        try:
            open_socket(path).close()
            seen = time.monotonic()
        except (OSError, MalleableError):
            if time.monotonic() - seen > NO_BROKER_SECONDS:
                client.give_up()
                return


def _end(folder: JobFolder, seat: Membership, ending: Ending, result: Result) -> None:
    """Write the result down, then tell the broker; on a full disk its cores must not wait for that."""
    while True:
        try:
            folder.write_result(result)
        except OSError:
            seat.end(ending.outcome)
            if not folder.path.exists():  # no broker will ever ask
                return
            time.sleep(RETRY_SECONDS)
        else:
            seat.end(ending.outcome)
            return


def _complain(folder: JobFolder, reason: str) -> None:
    """Say what is wrong where the program's own complaints would stand."""
    with suppress(OSError), (folder.path / "errors").open("a", encoding="utf-8") as errors:
        errors.write(f"malleable: {reason}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
