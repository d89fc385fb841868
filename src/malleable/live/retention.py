"""How long what ended programs have left is kept: their folders, with what they printed, and their variables.

    Keep.parse("500,7d")     # the last 500 programs and those of the last seven days, whichever are more

Once an hour programs that are neither among the last ones nor recent are noted as removed, and then their
folders are removed, one at a time. A broker that is killed in between finds the rest when it starts again.
That a program was there, its command and how it ended stay known.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.errors import ParameterError
from malleable.live.job_folder import JobFolder
from malleable.live.state.schema import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from malleable.live.loop_thread import LoopThread
    from malleable.live.state import Store

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS = 3600.0
"""Seconds between two looks for what may be removed."""
PART = re.compile(r"(\d{1,9})\s*([hd]?)", re.IGNORECASE)
SECONDS = {"h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Keep:
    """The last so many ended programs are kept, and those that ended within so many seconds."""

    programs: float = 1000
    seconds: float = 30 * SECONDS["d"]

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Read `500` (programs), `7d` or `12h` (since their end), `500,7d` (whichever are more), or `all`."""
        if text.strip().lower() == "all":
            return cls(math.inf, math.inf)
        programs, seconds = 0, 0.0
        for part in text.split(","):
            found = PART.fullmatch(part.strip())
            if found is None:
                raise ParameterError(
                    f"not a number of programs or days: {text!r:.40}", "for example --keep 7d, or 500, or all"
                )
            if found[2]:
                seconds = int(found[1]) * SECONDS[found[2].lower()]
            else:
                programs = int(found[1])
        return cls(programs, seconds)


KEEP = Keep()
"""What is kept by default."""


class Retention:
    """Removes what is kept no longer, step by step, in the thread that sees to programs."""

    def __init__(self, store: Store, folder: Path, keep: Keep, loop: LoopThread) -> None:
        self._store, self._folder, self._keep, self._loop = store, folder, keep, loop

    def start(self) -> None:
        """Look now, for what an earlier broker has left, too, and then again and again."""
        if self._keep.programs < math.inf:
            self._loop.soon(self._look, True)

    def _look(self, first: bool = False) -> None:
        found: list[str] = []
        try:
            found = self._store.ended_beyond(int(self._keep.programs), time.time() - self._keep.seconds)
            if first:
                found += self._left_behind()
        except (StoreError, OSError) as error:
            LOGGER.warning("cannot look for programs to remove: %s", error)
        self._remove_next(found)

    def _left_behind(self) -> list[str]:
        """Folders of programs that were noted as removed."""
        there = [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else []
        stored = {name: self._store.get(name) for name in there}
        return [name for name, job in stored.items() if job is not None and job.removed]

    def _remove_next(self, jobs: list[str]) -> None:
        """Remove one, and the others in their turn: what else there is to do comes in between."""
        if not jobs:
            self._loop.later(LOOK_SECONDS, self._look)
            return
        job = jobs.pop()
        folder = JobFolder(self._folder / job)
        if folder.supervisor() is None:
            try:
                self._store.mark_removed(job)
                shutil.rmtree(folder.path, ignore_errors=True)
            except StoreError as error:
                LOGGER.warning("cannot remove program %s: %s", job, error)
        self._loop.soon(self._remove_next, jobs)
