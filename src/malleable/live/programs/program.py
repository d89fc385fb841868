"""A program that runs on the CPUs it is given, is paused and continued, and ends with all that it started.

Its folder holds `output` (both streams, or the first where `errors` has the second) and `progress` (which the
program writes).
"""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from malleable.errors import ExecutionError
from malleable.live.programs.output_limit import OutputLimit
from malleable.live.programs.progress import Progress, ProgressFile
from malleable.live.programs.resize_notice import ResizeNotice
from malleable.live.system.affinity import bind_family, bound_to
from malleable.live.system.cpus import CpuSets
from malleable.live.system.listeners import tell
from malleable.live.system.process_tree import family, reap_orphans, signal_family
from malleable.live.system.whole_files import raise_if_short
from malleable.live.system.widths import checked_width

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

GRACE_SECONDS = 5.0
"""Seconds that a program has to end after SIGTERM, before SIGKILL."""
LOOK_SECONDS = 0.2
"""Seconds between two looks for progress; the end of the program is seen at once."""
REST_SECONDS = 0.02
"""Seconds between two looks at what a program has left behind."""


class Program:
    """One run of a command. Callbacks come from a thread of its own.

    `on_progress` is called as the program reports, in its progress file, or in its output where
    `output_progress` makes progress of a line; `on_end(code)` once, with a negative code for a signal.
    `on_resize` is a signal or a command that tells the program of a new width. Started at width 0, it is
    stopped at once. `reaper` is the number of this process if it adopts orphans: the program's daemons are
    then part of it. With `most_output` about so many bytes are kept of each stream (`OutputLimit`).
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        width: int = 1,
        *,
        cpus: Collection[int] | None = None,
        environment: Mapping[str, str] | None = None,
        working_folder: Path | None = None,
        inherited: Sequence[int] = (),
        stdin: int | None = None,
        on_resize: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        on_end: Callable[[int], None] | None = None,
        output_progress: Callable[[str], Progress | None] | None = None,
        grace_seconds: float = GRACE_SECONDS,
        errors_apart: bool = False,
        reaper: int | None = None,
        most_output: int | None = None,
    ) -> None:
        self._notice = None if on_resize is None else ResizeNotice.parse(on_resize)
        self._on_progress, self._on_end = on_progress, on_end
        self._grace_seconds, self._reaper = grace_seconds, reaper
        self._kill_at = math.inf
        self._change = threading.RLock()
        self._reports = ProgressFile(folder / "progress")
        if output_progress is not None:
            self._reports = ProgressFile(folder / "output", output_progress)
        self._limits: list[OutputLimit] = []
        if most_output is not None:
            streams = ("output", "errors") if errors_apart else ("output",)
            self._limits += (OutputLimit(folder / name, most_output) for name in streams)
        self._ended: Future[int] = Future()
        self._width = checked_width(width)
        told = {**os.environ, **(environment or {}), "MALLEABLE_CORES": str(width)}
        told["MALLEABLE_PROGRESS"] = str((folder / "progress").absolute())
        (folder / "progress").touch()
        self._cpus = _chosen(width, cpus)
        with bound_to(self._cpus):
            errors = folder / "errors" if errors_apart else None
            self._child = _started(command, told, working_folder, folder / "output", errors, inherited, stdin)
        # From here on the command runs: nothing may fail.
        self._notices = ThreadPoolExecutor(1, "malleable-resize")
        if width == 0:
            self._signal(signal.SIGSTOP)
        threading.Thread(target=self._watch, name="malleable-program", daemon=True).start()

    @property
    def pid(self) -> int:
        """The first process of the program, which leads its session and process group."""
        return self._child.pid

    @property
    def width(self) -> int:
        """How many cores the program may use; 0 while it is paused."""
        return self._width

    @property
    def width_in_use(self) -> int:
        """The same: a program is moved from outside, and at once. 0 when it has ended."""
        return 0 if self._ended.done() else self._width

    def set_width(self, width: int, cpus: Collection[int] | None = None) -> None:
        """Run on that many cores: the given CPUs, or some that are near each other. 0 is a pause."""
        checked_width(width)
        with self._change:
            before = self._width
            if self._ended.done():
                self._width = width
                return
            if width == 0:
                self._signal(signal.SIGSTOP)
            else:
                self._cpus = _chosen(width, cpus)
                bind_family(self.pid, self._cpus, self._reaper)
                if before == 0:
                    self._signal(signal.SIGCONT)
                if self._notice is not None and width != before:
                    self._notices.submit(self._notice.give, self.pid, width)
            self._width = width  # after what can fail, which is tried again then

    def cancel(self) -> None:
        """Ask the program and all that it started to end; after a while they are killed. Does not wait."""
        with self._change:
            if not self._ended.done():
                self._ask_to_end()

    def wait(self, seconds: float | None = None) -> int:
        """Wait for the end, and return the exit code; a negative one is a signal."""
        return self._ended.result(seconds)

    def _signal(self, signum: signal.Signals) -> None:
        signal_family(self.pid, signum, self._reaper)

    def _ask_to_end(self) -> None:
        self._kill_at = min(self._kill_at, time.monotonic() + self._grace_seconds)
        with suppress(OSError):  # no file to be had: who is not reached is killed later
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # what is stopped does not hear SIGTERM

    def _kill_if_due(self) -> None:
        if time.monotonic() >= self._kill_at:
            with suppress(OSError):  # no file to be had: it is due the next time, too
                self._signal(signal.SIGKILL)

    def _watch(self) -> None:
        """Pass progress on until the program ends; then end what it has left behind, and tell."""
        while not self._ends_within(LOOK_SECONDS):
            self._look()
            self._kill_if_due()
            self._reap_orphans()
        self._end_rest()
        self._look()
        for limit in self._limits:
            limit.finish()
        self._notices.shutdown(wait=False, cancel_futures=True)
        with self._change:  # from here on its number may be another program's
            code = self._child.wait()
            self._reap_orphans()
            self._ended.set_result(code)
        tell(self._on_end, code)

    def _ends_within(self, seconds: float) -> bool:
        """Whether the first process ends within so many seconds. It is not waited for."""
        try:
            process = os.pidfd_open(self.pid)
        except OSError:  # no file to be had
            time.sleep(seconds)
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        try:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            return bool(poll.poll(seconds * 1000.0))
        finally:
            os.close(process)

    def _end_rest(self) -> None:
        """End what the program has left behind. It is not waited for yet, so its number still is its own."""
        left = self._left()  # it looks at all processes of the machine: once, where nothing is left
        if left:
            self._ask_to_end()
        while left:
            time.sleep(REST_SECONDS)
            self._kill_if_due()
            left = self._left()

    def _left(self) -> bool:
        """Whether anything of the program is left, as far as can be told."""
        try:
            return bool(family(self.pid, self._reaper))
        except OSError:  # no file to be had
            return True

    def _reap_orphans(self) -> None:
        if self._reaper is not None:
            reap_orphans(self.pid)

    def _look(self) -> None:
        news = self._reports.news()
        if news is not None:
            tell(self._on_progress, news)
        for limit in self._limits:
            limit.look()


def _chosen(width: int, cpus: Collection[int] | None) -> Collection[int]:
    """The CPUs to run on; some near each other where none are given."""
    if cpus is not None:
        return cpus
    sets = CpuSets()
    return sets.grant(min(max(width, 1), sets.total))


def _started(
    command: Sequence[str],
    environment: Mapping[str, str],
    working_folder: Path | None,
    output: Path,
    errors: Path | None,
    inherited: Sequence[int],
    stdin: int | None,
) -> subprocess.Popen[bytes]:
    """The program, in a session of its own."""
    if not command:
        raise ExecutionError("there is no command to run", "write it behind --: -- python work.py")
    try:
        with ExitStack() as files:
            first = _appended_to(output, files)
            second = subprocess.STDOUT if errors is None else _appended_to(errors, files)
            return subprocess.Popen(  # noqa: S603 - this is what the user asked for
                command, env=environment, cwd=working_folder,
                stdin=subprocess.DEVNULL if stdin is None else stdin, stdout=first, stderr=second,
                start_new_session=True, pass_fds=inherited,
            )  # fmt: skip
    except OSError as error:
        raise_if_short(error)
        problem = f"cannot run {command[0]!r}: {error.strerror or error}"
        raise ExecutionError(problem, "try the command by itself") from None


def _appended_to(path: Path, files: ExitStack) -> int:
    """A file that a program writes to; what goes wrong when it is closed is no reason not to have started."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def close() -> None:
        with suppress(OSError):
            os.close(file)

    files.callback(close)
    return file
