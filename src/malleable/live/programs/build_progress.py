"""How far a build is: by what it prints, and by the commands that `make -n` says it will run.

ninja and the Makefiles of CMake say it themselves: `[12/100] …`, `[ 12%] …`. Of other Makefiles, `make -n`
prints the commands that are to be run, each as make prints it again when it starts it, unless the Makefile
says `@`. A command that was started and does not run any more is done.
"""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from malleable.live.process_tree import signal_family
from malleable.live.programs.progress import Progress, parse_build_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAKES = ("make", "gmake")
PLAN_SECONDS = 5.0
"""Seconds that `make -n` may take, which are the build's own time."""
MOST_BYTES = 1 << 20
"""Bytes of output that are read at a look."""


def planned_commands(
    words: Sequence[str], folder: Path | None, environment: Mapping[str, str]
) -> Counter[str]:
    """The commands that make will run, as it prints them; none where that cannot be had."""
    if PurePath(words[0]).name not in MAKES:
        return Counter()
    try:
        make = subprocess.Popen(  # noqa: S603 - the user's own command, which runs nothing this way
            [*words, "-n"], cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return Counter()
    with make:
        try:
            said, _ = make.communicate(timeout=PLAN_SECONDS)
        except subprocess.TimeoutExpired:
            signal_family(make.pid, signal.SIGKILL)  # with what its Makefile has it ask the shell
            return Counter()
    lines = said.decode("utf-8", errors="replace").splitlines()
    return Counter(line for line in lines if line and not line.startswith(("make:", "make[")))


class BuildProgress:
    """Reads what a build prints, as it comes; `running` says how many commands run at most."""

    def __init__(self, output: Path, planned: Counter[str], running: Callable[[], int]) -> None:
        self._output, self._left, self._running = output, planned.copy(), running
        self._total = planned.total()
        self._read = 0
        self._rest = b""
        self._started = 0
        self._speaks = False
        """Whether the build says itself how far it is."""
        self._told: Progress | None = None

    def news(self) -> Progress | None:
        """The latest progress, if there is any that was not told yet."""
        said: Progress | None = None
        for line in self._new_lines():
            said = parse_build_progress(line) or said
            if self._left[line] > 0:
                self._left[line] -= 1
                self._started += 1
        self._speaks = self._speaks or said is not None
        if self._started and not self._speaks:
            said = Progress(float(max(0, self._started - self._running())), float(self._total))
        if said is None or said == self._told or (self._told is not None and said.done < self._told.done):
            return None
        self._told = said
        return said

    def _new_lines(self) -> list[str]:
        """Whole lines that were printed since the last look."""
        found = b""
        with suppress(OSError), self._output.open("rb") as file:
            file.seek(self._read)
            found = file.read(MOST_BYTES)
        self._read += len(found)
        *lines, self._rest = (self._rest + found).split(b"\n")
        return [line.decode("utf-8", errors="replace") for line in lines]
