"""One run of a program on a number of cores: where it may run, what it is told, and how it ends.

A program learns how many cores it may use in three ways: the processors that it may run on (its affinity, on
Linux), the variables that libraries for parallel computing read, and `{cores}` in its command. It runs in a
process group of its own, so that whatever it starts ends with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from malleable.errors import MeasurementError
from malleable.execution.affinity import bound_to
from malleable.execution.cpu_places import SYSTEM_CPUS, places
from malleable.execution.thread_variables import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

CORES = "{cores}"
PATIENCE = 2.0
"""Seconds that a program has to end after SIGTERM, before SIGKILL."""
LOOK = 0.05
"""Seconds between two looks at whether to stop; a run that ends is seen at once."""


CAN_BIND = hasattr(os, "sched_setaffinity")
"""Whether programs can be bound to processors here."""


def processors() -> list[int]:
    """The processors that this process may use, one of each core before the second of any.

    Two processors of one core (hyper-threads) share it, and would look like a bad speedup.
    """
    there = sorted(os.sched_getaffinity(0)) if CAN_BIND else list(range(os.cpu_count() or 1))
    seen: Counter[int] = Counter()
    ranks = {}
    for place in places(there, SYSTEM_CPUS):
        ranks[place.cpu] = seen[place.core]
        seen[place.core] += 1
    return sorted(there, key=lambda processor: (ranks[processor], processor))


def check_program(command: Sequence[str]) -> None:
    """See that there is such a program."""
    if not command:
        raise MeasurementError("there is no command to measure", "write it behind --: -- python work.py")
    if shutil.which(command[0]) is None:
        hint = "give the path of a program, or the name of one that the shell finds"
        raise MeasurementError(f"there is no program {command[0]!r}", hint)


def run(
    command: Sequence[str],
    cores: int,
    alive: Callable[[], None] | None = None,
    group: Callable[[int | None], None] | None = None,
) -> float:
    """Run a command on some cores and return how long it took, in seconds.

    `alive` is called while it runs; what it raises ends the program and everything that it started. `group`
    is told the process group of the run, and None when it is over.
    """
    told = [argument.replace(CORES, str(cores)) for argument in command]
    environment = {**os.environ, **dict.fromkeys(VARIABLES, str(cores))}
    tell = group or (lambda _: None)
    with tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        with bound_to(processors()[:cores]) if CAN_BIND else nullcontext():
            child = _started(told, environment, complaints)
        tell(child.pid)
        try:
            end = _wait(child, alive)
        finally:
            tell(None)
        if child.returncode != 0:
            raise _failure(child.returncode, cores, complaints)
    return end - start


def _started(told: list[str], environment: dict[str, str], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    """The program, in a process group of its own."""
    try:
        return subprocess.Popen(  # noqa: S603 - this is what the user asked for
            told, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=complaints, process_group=0,
        )  # fmt: skip
    except OSError as error:
        problem = f"cannot run {told[0]!r}: {error.strerror or error}"
        raise MeasurementError(problem, "try the command by itself") from None


def _wait(child: subprocess.Popen[bytes], alive: Callable[[], None] | None) -> float:
    """Wait for the end of a run, to the moment; end it in case of an interruption."""
    ended: list[float] = []

    def watch() -> None:
        child.wait()
        ended.append(time.perf_counter())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        while watcher.is_alive():
            watcher.join(LOOK)
            if alive is not None:
                alive()
    except BaseException:
        _end(child, watcher)
        raise
    finally:
        _send(child, signal.SIGKILL)  # whatever the program left behind in its group
    return ended[0]


def _end(child: subprocess.Popen[bytes], watcher: threading.Thread) -> None:
    """End a program and all that it started, politely first."""
    _send(child, signal.SIGTERM)
    watcher.join(PATIENCE)
    _send(child, signal.SIGKILL)
    watcher.join()


def _send(child: subprocess.Popen[bytes], signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signum)


def _failure(status: int, cores: int, complaints: IO[bytes]) -> MeasurementError:
    """What went wrong with a run."""
    complaints.seek(0, os.SEEK_END)
    complaints.seek(max(0, complaints.tell() - 4096))
    lines = complaints.read().decode(errors="backslashreplace").strip().splitlines()
    how = f"exited with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
    problem = f"the command {how} on {cores} core{'s' * (cores > 1)}"
    hint = f"its last words: {lines[-1].strip()[:200]}" if lines else "it said nothing; try it by itself"
    return MeasurementError(problem, hint)
