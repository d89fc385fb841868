"""Commands as real processes that are sent signals, and whether anything of them is left (it reads /proc)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from malleable.live.system.process_tree import family
from support.shell import PATIENCE, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Found = TypeVar("Found")
MALLEABLE = str(Path(sys.executable).parent / "malleable")
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SLOW = """\
import os, pathlib, time

ASKED = pathlib.Path(__file__).with_name("asked")


def slow(jobs, cores):
    time.sleep(0.002)
    with ASKED.open("a") as log:
        log.write(".")
    return [cores / len(jobs)] * len(jobs)


def as_slow(jobs, cores):
    return slow(jobs, cores)


def stuck(jobs, cores):
    if ASKED.exists() and ASKED.stat().st_size > 300:
        time.sleep(3600.0)
    return slow(jobs, cores)
"""
"""Policies that note each time they are asked; one of them does not return after a while."""


def write_slow_policies(folder: Path) -> Path:
    """Write the file of slow policies; returns the file that grows each time one is asked."""
    (folder / "slow.py").write_text(SLOW)
    return folder / "asked"


def _listen() -> None:
    """Have the child hear signals even if the tests themselves were started deaf to them (`&`, nohup)."""
    for signum in STOPS:
        signal.signal(signum, signal.SIG_DFL)


@contextmanager
def running(*command: str, **options) -> Iterator[subprocess.Popen]:
    """A command in a session of its own; whatever is left of it in the end is killed."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **options}
    process = subprocess.Popen(
        command,
        env=settings.pop("env", None) or environment(),
        start_new_session=True,
        preexec_fn=_listen,  # noqa: PLW1509 - nothing else runs in the child before exec
        **settings,
    )
    try:
        yield process
    finally:
        for pid in _session(process.pid):
            kill(pid)
        process.kill()
        process.communicate()


def kill(pid: int) -> None:
    """Kill a process, unless it has ended by itself since it was found."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_paused(pid: int) -> bool:
    """Whether a program is stopped, with all its descendants.

    One that has ended stays a zombie while its parent is stopped, and the parent of one that was stopped
    between vfork and exec stays in uninterruptible sleep.
    """
    states = {state_of(one) for one in family(pid)} - {""}
    return "T" in states and states <= {"T", "D", "Z"}


def state_of(pid: int) -> str:
    """The state of a process as a letter; nothing if it is not there.

    A process that SIGSTOP was sent to has stopped, T: it has no turn before it takes the signal, which on a
    busy machine may last.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    fields = dict(line.split(":\t", 1) for line in lines)
    pending = int(fields["ShdPnd"], 16) | int(fields["SigPnd"], 16)
    stopping = pending >> (signal.SIGSTOP - 1) & 1
    return "T" if stopping and fields["State"][0] not in "ZX" else fields["State"][0]


def wait_until(condition: Callable[[], Found], what: str = "it", seconds: float = PATIENCE) -> Found:
    """Wait for something to become true, and fail if it does not; its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.01)
    return found


def asked(log: Path, times: int) -> Callable[[], bool]:
    """Whether a slow policy has been asked so often."""
    return lambda: log.exists() and log.stat().st_size >= times


def listens(process: subprocess.Popen) -> bool:
    """Whether a process has a handler for SIGTERM."""
    assert process.poll() is None, process.communicate()
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are alive."""
    return [other for other, stat in _processes() if int(stat[1]) == pid and stat[0] not in "ZX"]


def fork_servers() -> list[int]:
    """The fork servers of the pools of this process, which may have other children: other tests' helpers."""
    return [pid for pid in children(os.getpid()) if b"fork_server" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(pids: list[int]) -> list[int]:
    """Those of the processes that are alive; dead ones that no parent has waited for are not."""
    living = {pid for pid, stat in _processes() if stat[0] not in "ZX"}
    return [pid for pid in pids if pid in living]


def assert_gone(pids: list[int]) -> None:
    """Nothing is left of the processes."""
    assert pids
    wait_until(lambda: not alive(pids), f"end of {pids}")


def _session(leader: int) -> list[int]:
    return [pid for pid, stat in _processes() if int(stat[3]) == leader and stat[0] not in "ZX"]


def _processes() -> Iterator[tuple[int, list[str]]]:
    """All processes, each with state, parent, group and session."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name stands in brackets and may hold anything.
            yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
