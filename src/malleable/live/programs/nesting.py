"""Programs that submit a program and wait for it.

A program that waits holds its cores. Were the other one a job of its own, it could wait for these cores for
ever: on one core, and under any policy that serves in order. So what is submitted from inside a program, and
waited for, is a part of that program and runs on its cores, as its Executors do.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from malleable.errors import ExecutionError
from malleable.live.broker.server.paths import broker_socket
from malleable.live.programs.job_folder import JobFolder
from malleable.live.system.whole_files import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAKES = frozenset(("make", "gmake"))
"""Builds that run one command at a time unless told otherwise; others look how many CPUs there are."""


class Parent(NamedTuple):
    """The program that this process is a part of, and the cores that it has now."""

    job: str
    cores: int

    def environment(self, command: Sequence[str]) -> dict[str, str]:
        """The variables of a command that runs inside."""
        known = {**os.environ, "MALLEABLE_CORES": str(self.cores)}
        flags = known.get("MAKEFLAGS", "")
        if Path(command[0]).name in MAKES and "-j" not in flags:
            known["MAKEFLAGS"] = f"{flags} -j{self.cores}".strip()
        return known

    def become(self, command: Sequence[str]) -> None:
        """Run a command in the place of this process."""
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and by no other program
            signal.signal(ignored, signal.SIG_DFL)
        with _explained(command):
            os.execvpe(command[0], list(command), self.environment(command))  # noqa: S606 - as the user asked

    def run(self, command: Sequence[str]) -> dict[str, Any]:
        """Run a command without showing what it prints; how it ended, as `status` has it of a job."""
        with _explained(command):
            done = subprocess.run(  # noqa: S603 - as the user asked
                command,
                env=self.environment(command),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        state = "failed" if done.returncode else "finished"
        known = {"command": list(command), "state": state, "exit_code": done.returncode}
        return {"id": None, "inside": self.job, **known}


def parent() -> Parent | None:
    """The program of the user's broker that this process is a part of; None outside of any."""
    told = os.environ.get("MALLEABLE_PROGRESS")
    folder = JobFolder(Path(told or "/nowhere").parent)
    request = read_document(folder.path / "request.json")
    if not isinstance(request, dict) or request.get("socket") != str(broker_socket()):
        return None
    if folder.supervisor() is None:  # the program has ended, and has left this process behind
        return None
    return Parent(str(request["job"]), max(folder.held().cores, 1))


@contextmanager
def _explained(command: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"cannot run {command[0]!r}: {error.strerror or error}"
        raise ExecutionError(problem, "try the command by itself") from None
