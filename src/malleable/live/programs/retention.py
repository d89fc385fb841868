"""How long what ended programs have left is kept: their folders, with what they printed, and their variables.

    Keep.parse("500,7d")     # the last 500 programs and those of the last seven days, whichever are more

Once an hour programs that are neither among the last ones nor recent are noted as removed, and then their
folders are removed, one at a time. A broker that is killed in between finds the rest when it starts again.
That a program was there, its command and how it ended stay known, of the last ten thousand of those. Ages are
of the time that brokers have counted (`Store.now`): a wall clock that is set ahead removes nothing.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from malleable.errors import ParameterError
from malleable.live.broker.state.schema import StoreError
from malleable.live.programs.job_folder import JobFolder

if TYPE_CHECKING:
    from pathlib import Path

    from malleable.live.broker.state import Store
    from malleable.live.system.loop_thread import LoopThread

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS = 3600.0
"""Seconds between two looks for what may be removed."""
MOST_AT_ONCE = 100
"""Programs that are noted as removed with one sync of the disk."""
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
        self._loop.soon(self._look, True)

    def _look(self, first: bool = False) -> None:
        beyond: list[str] = []
        left: list[JobFolder] = []
        try:
            self._store.note_time()
            if self._keep.programs < math.inf:
                beyond = self._store.ended_beyond(int(self._keep.programs), self._keep.seconds)
            if first:
                left = self._left_behind()
        except OSError as error:
            LOGGER.warning("cannot look for programs to remove: %s", error)
        self._clear_next(left, beyond)

    def _left_behind(self) -> list[JobFolder]:
        """Folders of ended programs that a broker did not come to tidy or to remove."""
        there = [JobFolder(path) for path in self._folder.iterdir()] if self._folder.is_dir() else []
        ended = self._store.ended()
        return [
            folder
            for folder in there
            if (removed := ended.get(folder.path.name)) is not None and (removed or not folder.is_tidy)
        ]

    def _clear_next(self, left: list[JobFolder], beyond: list[str]) -> None:
        """Tidy or remove one, and the others in their turn: what else there is to do comes in between."""
        if left:
            try:
                self._clear(left.pop())
            except OSError as error:
                LOGGER.warning("cannot tidy the folder of a program: %s", error)
        elif beyond:
            batch, beyond = beyond[:MOST_AT_ONCE], beyond[MOST_AT_ONCE:]
            left = self._mark(batch)
        else:
            with suppress(StoreError):
                self._store.forget_removed()
            self._loop.later(LOOK_SECONDS, self._look)
            return
        self._loop.soon(self._clear_next, left, beyond)

    def _mark(self, jobs: list[str]) -> list[JobFolder]:
        """Note programs as removed; the folders that are to be removed now."""
        folders = [JobFolder(self._folder / job) for job in jobs]
        try:
            free = [folder for folder in folders if folder.supervisor() is None]
            self._store.mark_removed([folder.path.name for folder in free])
        except OSError as error:
            LOGGER.warning("cannot remove programs: %s", error)
            return []
        return free

    def _clear(self, folder: JobFolder) -> None:
        stored = self._store.get(folder.path.name)
        if stored is None or folder.supervisor() is not None:
            return
        if stored.removed:
            shutil.rmtree(folder.path, ignore_errors=True)
        elif stored.accepted is not None and folder.is_of(stored.ticket):
            folder.tidy()  # what an earlier malleable left may say what the database does not
