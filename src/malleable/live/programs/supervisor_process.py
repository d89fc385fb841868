"""The broker's hand on supervisors: send one a signal, and end what a dead one has left behind."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from malleable.live.programs.job_folder import this_boot
from malleable.live.system.process_tree import environment, look_up, processes, signal_family

if TYPE_CHECKING:
    from malleable.live.programs.job_folder import JobFolder, ProcessName


def ask_to_end(name: ProcessName) -> None:
    """Have a supervisor cancel its program."""
    with suppress(ProcessLookupError):
        process = os.pidfd_open(name.pid)
        try:
            if name.process() is not None:
                signal.pidfd_send_signal(process, signal.SIGTERM)
        finally:
            os.close(process)


def end_leftovers(folder: JobFolder) -> None:
    """Kill what is left of a program whose supervisor died: its cores are another's from now on."""
    for pid in {*_noted(folder), *_told_of(folder)}:
        signal_family(pid, signal.SIGKILL)


def _noted(folder: JobFolder) -> list[int]:
    """The program's first process, as far as it was noted.

    The number of a session is given to no other while a process of it lives, so it may be used though its
    first process has ended.
    """
    name = folder.program()
    if name is None or name.boot != this_boot() or (look_up(name.pid) and not name.process()):
        return []
    return [name.pid]


def _told_of(folder: JobFolder) -> list[int]:
    """Processes that were told of this folder, as the program and what it starts are."""
    told = os.fsencode(f"MALLEABLE_PROGRESS={(folder.path / 'progress').absolute()}")
    return [process.pid for process in processes() if told in environment(process.pid)]


def log_end(folder: JobFolder) -> str:
    """The last line of a supervisor's log."""
    try:
        lines = (folder.path / "supervisor.log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1][:200] if lines else ""
