"""A process that forks the supervisors of programs, so that none has to start Python and import its modules.

The broker starts it with its first program (`SupervisorServer`). It has no threads, as a process that forks
must not. It ends with the broker; the supervisors that it has forked do not.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.live.system.open_files import set_limit, usual_limit

if TYPE_CHECKING:
    from malleable.live.programs.job_folder import JobFolder

USUAL = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
"""Signals that a supervisor hears as if the broker had never handled or ignored them."""
LARGEST = 1 << 15
"""Bytes of an order or an answer: a path has 4096 at most, of up to six letters each if it is escaped."""
ANSWER_SECONDS = 30.0
"""Seconds that the server has to answer: the first time it has to import what supervisors need."""
COMM = Path("/proc/self/comm")


class SupervisorServer:
    """The broker's hand on the server. One thread calls it; what cannot be done is an `OSError`."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._pid = 0

    def start(self, folder: JobFolder) -> int:
        """Start a supervisor, in a session of its own; returns the number of its process."""
        answer = self._ask({"start": str(folder.path)}, launch=True)
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        return int(answer["pid"])

    def reap(self, pid: int) -> int | None:
        """The exit code of a supervisor that has ended; None for one that this server did not start."""
        try:
            code = self._ask({"reap": pid}, launch=False).get("code")
        except OSError:
            return None
        return None if code is None else int(code)

    def close(self) -> None:
        """End the server; the supervisors go on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)

    def _ask(self, order: dict[str, Any], *, launch: bool) -> dict[str, Any]:
        if self._socket is None:
            if not launch:
                return {}
            self._launch()
        assert self._socket is not None  # noqa: S101 - it was launched
        try:
            self._socket.send(json.dumps(order).encode())
            answer = self._socket.recv(LARGEST)
            if not answer:
                raise ConnectionResetError("the server of supervisors has ended")
        except OSError:
            self.close()
            raise
        return dict(json.loads(answer))

    def _launch(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                # In UTF-8, whatever the broker's locale: words have the bytes with which they were submitted.
                self._pid = os.posix_spawn(
                    sys.executable,
                    [
                        *(
                            sys.executable,
                            "-X",
                            "utf8",
                            "-P",
                            "-m",
                            "malleable.live.programs.supervisor_server",
                        ),
                        str(usual_limit()),
                    ],
                    os.environ,
                    file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                    setsid=True,
                    setsigmask=(),
                    setsigdef=USUAL,
                )
            except OSError:
                ours.close()
                raise
        ours.settimeout(ANSWER_SECONDS)
        self._socket = ours


def main() -> None:
    """Fork a supervisor whenever the broker asks for one, until it is gone."""
    set_limit(int(sys.argv[1]))
    # What a supervisor would import later, it has from the start.
    from malleable.live.broker import remote  # noqa: F401, PLC0415
    from malleable.live.programs import build_client, supervisor  # noqa: F401, PLC0415
    from malleable.live.programs.job_folder import this_boot  # noqa: PLC0415

    this_boot()  # it is remembered
    control = socket.socket(fileno=os.dup(0))
    control.set_inheritable(False)
    gc.collect()
    gc.freeze()  # what a collection would touch in each supervisor, all of them share
    while order := _received(control):
        start, reap = order.get("start"), order.get("reap", 0)
        answer = {"code": _code(reap)} if start is None else _start(Path(start), control)
        control.send(json.dumps(answer).encode())


def _received(control: socket.socket) -> dict[str, Any]:
    """The next order; an empty one when the broker is gone."""
    try:
        text = control.recv(LARGEST)
    except OSError:
        return {}
    return dict(json.loads(text)) if text else {}


def _start(folder: Path, control: socket.socket) -> dict[str, Any]:
    try:
        log = os.open(folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return {"errno": error.errno}
    try:
        pid = os.fork()
    except OSError as error:
        return {"errno": error.errno}
    else:
        if pid == 0:
            control.close()
            _become_supervisor(folder, log)
        return {"pid": pid}
    finally:
        os.close(log)


def _become_supervisor(folder: Path, log: int) -> None:
    """Be a supervisor, and never come back."""
    from malleable.live.programs.supervisor import main as supervise  # noqa: PLC0415 - imported before the fork

    status = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        for file, place in ((null, 0), (log, 1), (log, 2)):
            os.dup2(file, place)
        with suppress(OSError):
            COMM.write_text(f"malleable-{folder.name}")  # for those who look with ps
        status = supervise([str(folder)])
    except SystemExit as asked:
        status = asked.code if isinstance(asked.code, int) else 1
    except BaseException:  # noqa: BLE001 - this process has no caller to raise it to
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(status)


def _code(pid: int) -> int | None:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
